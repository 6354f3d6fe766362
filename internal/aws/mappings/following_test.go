package mappings_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

const (
	account  = "111122223333"
	nodeRole = "arn:aws:iam::111122223333:role/node"
	opsRole  = "arn:aws:iam::111122223333:role/ops"
	ada      = "arn:aws:iam::111122223333:user/ada"
	awsAuth  = "/api/v1/namespaces/kube-system/configmaps/aws-auth"
	nodes    = "- rolearn: " + nodeRole + "\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: " +
		"[system:bootstrappers, system:nodes]\n"
	nodeName = "system:node:{{EC2PrivateDNSName}}"
)

// cluster is an API server whose requests may fail.
type cluster struct {
	*fakeapiserver.Server
	t *testing.T

	mu   sync.Mutex
	down string // a part of the paths that are not served; it can be empty
	seen func(*http.Request)
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t}
	c.Server = fakeapiserver.New(fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.seen != nil {
			c.seen(r)
		}
		if c.down != "" && strings.Contains(r.URL.Path, c.down) {
			return fakeapiserver.Unavailable
		}
		return fakeapiserver.NoFault
	}})
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) outage(paths string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = paths
}

func (c *cluster) set(data map[string]string) {
	c.t.Helper()
	if err := c.Put(awsAuth, &corev1.ConfigMap{Data: data}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) identity(name, arn, username string, groups ...any) {
	c.t.Helper()
	err := c.Put("/apis/iamauthenticator.k8s.aws/v1alpha1/iamidentitymappings/"+name, map[string]any{
		"apiVersion": "iamauthenticator.k8s.aws/v1alpha1", "kind": "IAMIdentityMapping", "metadata": map[string]any{},
		"spec": map[string]any{"arn": arn, "username": username, "groups": groups},
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) events() []corev1.Event {
	c.t.Helper()
	list, err := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().Events("kube-system").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

// recorder is an observer that records its calls.
type recorder struct {
	mu      sync.Mutex
	changes []mappings.Change
	reach   []string
	events  []error
}

func (o *recorder) MappingsChanged(c mappings.Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes = append(o.changes, c)
}

func (o *recorder) MappingsUnreachable(source string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reach = append(o.reach, fmt.Sprint(source, " ", err != nil))
}

func (o *recorder) EventFailed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, err)
}

func (o *recorder) all() []mappings.Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.changes)
}

func (o *recorder) reached() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.reach)
}

// expect waits until a number of calls of MappingsUnreachable was recorded, and compares
// them. A source is read before the call.
func (o *recorder) expect(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, "the observer is notified", func() bool { return len(o.reached()) >= len(want) })
	if got := o.reached(); !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

// follow runs live mappings until the test ends.
func follow(t *testing.T, opts mappings.Options) (*mappings.Live, *recorder) {
	t.Helper()
	observer := &recorder{}
	opts.Observer = observer
	opts.Namespace, opts.Name, opts.Interval = "kube-system", "aws-auth", time.Millisecond
	opts.Rules = iam.Rules{Partition: "aws", RolePaths: iam.MatchName, Reserved: iam.DefaultReserved()}
	live, err := mappings.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := live.Find(nodeRole, account); err == nil || !strings.Contains(err.Error(), "has not been read yet") {
		t.Errorf("before anything is read, the error is %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { live.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return live, observer
}

func ofConfigMap(c *cluster) mappings.Options {
	return mappings.Options{Sources: []v1alpha1.MappingSource{v1alpha1.ConfigMapSource}, Cluster: c.Config()}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// username returns the user of a caller: "" if it is not mapped, "?" for an error.
func username(live *mappings.Live, arn string) string {
	mapping, found, err := live.Find(arn, account)
	switch {
	case err != nil:
		return "?"
	case !found:
		return ""
	case mapping.Kind == iam.AccountMapping:
		return "account"
	}
	return mapping.Username
}

func mapped(t *testing.T, live *mappings.Live, arn, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %q", arn, want), func() bool { return username(live, arn) == want })
}

func codes(findings []finding.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, string(f.Code))
	}
	return all
}
