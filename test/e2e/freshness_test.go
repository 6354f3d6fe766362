package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"golang.org/x/sync/errgroup"
)

// TestNoKubeletIsRefusedWhileWatchesLag puts the same load on both control planes.
// Each pod is created after the secret and the config map that only it names. A node
// learns of a pod only from the API server, so each request for them must be allowed.
// A refusal means that the authorizer has not yet received the pod.
//
// The refusals of the in-tree authorizer are logged and do not fail the test.
func TestNoKubeletIsRefusedWhileWatchesLag(t *testing.T) {
	for _, load := range []struct {
		name string
		run  func(t *testing.T, c cluster) (asked int, refused map[string]int)
	}{
		{"hollow kubelets", kubeletsRush},
		{"a client that reads objects as soon as its watch delivers a pod", clientRushes},
	} {
		t.Run(load.name, func(t *testing.T) {
			asked, refused := load.run(t, shop)
			t.Logf("in-tree: %s", tally(asked, refused))
			asked, refused = load.run(t, ours)
			t.Logf("ours:    %s", tally(asked, refused))
			if len(refused) > 0 {
				t.Errorf("node-authorizer refused %v for lack of relations that exist", refused)
			}
			if asked < 100 {
				t.Errorf("%d requests are not enough load", asked)
			}
		})
	}
}

func tally(asked int, refused map[string]int) string {
	sum := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(refused)) {
		sum += refused[kind]
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, refused[kind]))
	}
	return strings.TrimSpace(fmt.Sprintf("%d of %d requests refused %s", sum, asked, strings.Join(kinds, ", ")))
}

// createRush creates pods on all nodes alternately, as fast as the API server allows.
func createRush(t *testing.T, admin kubernetes.Interface, space string, pods int, nodes ...string) {
	t.Helper()
	var creating errgroup.Group
	creating.SetLimit(8)
	for i := range pods {
		creating.Go(func() error {
			return createSecretPod(t.Context(), admin, space, fmt.Sprintf("rush-%03d", i), nodes[i%len(nodes)])
		})
	}
	orFatal(t, creating.Wait())
}

// kubeletsRush makes kubelets start many pods and reads their refused requests from the
// audit log.
func kubeletsRush(t *testing.T, c cluster) (asked int, refused map[string]int) {
	const space, pods = "rush", 60
	admin := client(t, c.Plane)
	namespace(t, admin, space)
	before := c.audit.Size()
	createRush(t, admin, space, pods, "web-1", "pay-1")
	eventually(t, "all pods run", func(ctx context.Context) error {
		list, err := admin.CoreV1().Pods(space).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	})
	events, err := c.audit.Events(before)
	if err != nil {
		t.Fatal(err)
	}
	refused = map[string]int{}
	for _, event := range events {
		if event.ObjectRef == nil || event.ObjectRef.Namespace != space ||
			!strings.HasPrefix(event.ObjectRef.Name, "rush-") && event.ObjectRef.Subresource != "token" {
			continue
		}
		asked++
		// An admission plugin without the pod in its cache answers that it does not exist.
		if event.ResponseStatus.Code == http.StatusForbidden || event.ResponseStatus.Code == http.StatusNotFound {
			refused[event.Verb+" "+event.ObjectRef.Resource]++
		}
	}
	return asked, refused
}

// clientRushes is faster than any kubelet: it asks for everything that a pod names as
// soon as its watch delivers the pod.
func clientRushes(t *testing.T, c cluster) (asked int, refused map[string]int) {
	const space, node, pods = "sprint", "sprinter", 300
	admin := client(t, c.Plane)
	namespace(t, admin, space)
	fast := nodeWithoutKubelet(t, c, node)

	watching, err := fast.CoreV1().Pods(space).Watch(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	var asking sync.WaitGroup
	var mu sync.Mutex
	refused = map[string]int{}
	note := func(kind string, err error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		if err != nil {
			refused[kind]++
		}
	}
	asking.Go(func() {
		timeout := time.After(time.Minute)
		for seen := 0; seen < pods; {
			select {
			case event := <-watching.ResultChan():
				pod, ok := event.Object.(*corev1.Pod)
				if event.Type != watch.Added || !ok {
					continue
				}
				seen++
				asking.Go(func() { askForAll(t.Context(), fast, pod, note) })
			case <-timeout:
				t.Errorf("%d of %d pods were seen", seen, pods)
				return
			}
		}
	})
	createRush(t, admin, space, pods, node)
	asking.Wait()
	return asked, refused
}

// askForAll sends the requests of a kubelet for a new pod, all at once and without retries.
func askForAll(ctx context.Context, node kubernetes.Interface, pod *corev1.Pod, note func(kind string, err error)) {
	var asking sync.WaitGroup
	asking.Go(func() {
		_, err := node.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		note("get pods", err)
	})
	asking.Go(func() {
		_, err := node.CoreV1().Secrets(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		note("get secrets", err)
	})
	asking.Go(func() {
		_, err := node.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		note("get configmaps", err)
	})
	asking.Go(func() {
		_, err := node.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{
				BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
			},
		}, metav1.CreateOptions{})
		note("create tokens", err)
	})
	asking.Wait()
}

// nodeWithoutKubelet makes a Node object and returns a client with its
// credentials; the test removes the object.
func nodeWithoutKubelet(t *testing.T, c cluster, name string) kubernetes.Interface {
	t.Helper()
	path, err := c.UserKubeconfig(name, "system:node:"+name, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	admin := client(t, c.Plane)
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return clientFor(t, config)
}
