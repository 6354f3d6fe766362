package graph_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
)

func TestMirrorPod(t *testing.T) {
	everything := []func(*corev1.Pod){
		withServiceAccount("api"), withSecret("db"), withConfigMap("settings"), withClaim("orders"),
		withResourceClaims(corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: new("a100")}),
	}
	t.Run("relates itself alone", func(t *testing.T) {
		g := graph.New()
		g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
		g.SetPod(newPod("static", "worker-1", append(everything, mirror)...))
		if got := reached(g, "worker-1"); !slices.Equal(got, []string{"pod shop/static"}) {
			t.Errorf("want the mirror pod alone, got %v", got)
		}
	})
	t.Run("is one by the annotation, with any value", func(t *testing.T) {
		g := graph.New()
		pod := newPod("static", "worker-1", everything...)
		pod.Annotations = map[string]string{"kubernetes.io/config.mirror": ""}
		g.SetPod(pod)
		if got := reached(g, "worker-1"); !slices.Equal(got, []string{"pod shop/static"}) {
			t.Errorf("want the mirror pod alone, got %v", got)
		}
	})
	t.Run("is not one by other annotations", func(t *testing.T) {
		g := graph.New()
		pod := newPod("api", "worker-1", everything...)
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "api", "kubernetes.io/config.hash": "1"}
		g.SetPod(pod)
		checkRelated(t, g, "worker-1", graph.Secret, "shop", "db")
	})
	t.Run("gives up what it named before it became one", func(t *testing.T) {
		g := graph.New()
		g.SetPod(newPod("api", "worker-1", everything...))
		g.SetPod(newPod("api", "worker-1", append(everything, mirror)...))
		if got := reached(g, "worker-1"); !slices.Equal(got, []string{"pod shop/api"}) {
			t.Errorf("want the mirror pod alone, got %v", got)
		}
	})
	t.Run("takes nothing from an ordinary pod beside it", func(t *testing.T) {
		g := graph.New()
		g.SetPod(newPod("static", "worker-1", withSecret("db"), mirror))
		g.SetPod(newPod("api", "worker-1", withSecret("db")))
		g.DeletePod("shop", "static")
		checkRelated(t, g, "worker-1", graph.Secret, "shop", "db")
	})
}

func TestPodCountsWhileItIsBoundAndExists(t *testing.T) {
	t.Run("not before it is bound", func(t *testing.T) {
		g := graph.New()
		pending := newPod("api", "", withSecret("db"))
		pending.Status.NominatedNodeName = "worker-1"
		g.SetPod(pending)
		checkEmpty(t, g)
		g.SetPod(newPod("api", "worker-1", withSecret("db")))
		checkRelated(t, g, "worker-1", graph.Secret, "shop", "db")
	})
	t.Run("when it has finished", func(t *testing.T) {
		for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown} {
			g := graph.New()
			pod := newPod("api", "worker-1", withSecret("db"))
			pod.Status.Phase = phase
			g.SetPod(pod)
			checkRelated(t, g, "worker-1", graph.Secret, "shop", "db")
		}
	})
	t.Run("while it is being deleted", func(t *testing.T) {
		g := graph.New()
		pod := newPod("api", "worker-1", withSecret("db"))
		now := metav1.NewTime(time.Unix(1700000000, 0))
		pod.DeletionTimestamp = &now
		g.SetPod(pod)
		checkRelated(t, g, "worker-1", graph.Secret, "shop", "db")
	})
	t.Run("not when it was deleted", func(t *testing.T) {
		g := graph.New()
		g.SetPod(newPod("api", "worker-1", withSecret("db")))
		g.DeletePod("shop", "api")
		checkEmpty(t, g)
	})
	t.Run("on the node where it was created again", func(t *testing.T) {
		g := graph.New()
		g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key")))
		parts := []func(*corev1.Pod){withServiceAccount("api"), withSecret("db"), withConfigMap("settings"), withClaim("orders")}
		g.SetPod(newPod("api", "worker-1", parts...))
		before := reached(g, "worker-1")
		g.SetPod(newPod("api", "worker-2", parts...))
		if got := reached(g, "worker-1"); len(got) != 0 || g.HasNode("worker-1") {
			t.Errorf("the old node still reaches %v", got)
		}
		if got := reached(g, "worker-2"); len(got) != 7 || !slices.Equal(got, before) {
			t.Errorf("the new node reaches %v, want all of %v", got, before)
		}
	})
	t.Run("under its own namespace and name", func(t *testing.T) {
		g := graph.New()
		g.SetPod(newPod("api", "worker-1", withSecret("db")))
		g.SetPod(newPod("api", "worker-2", inNamespace("test"), withSecret("db")))
		checkUnrelated(t, g, "worker-2", graph.Secret, "shop", "db")
		checkUnrelated(t, g, "worker-1", graph.Secret, "test", "db")
		g.DeletePod("test", "api")
		checkRelated(t, g, "worker-1", graph.Secret, "shop", "db")
	})
}

// TestPodUpdate changes each field of a bound pod that may change.
func TestPodUpdate(t *testing.T) {
	template := withResourceClaims(corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: new("any-gpu")})
	status := func(claim string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new(claim)}}
		}
	}
	extended := func(claim string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: claim}
		}
	}
	for _, tc := range []struct {
		rule          string
		before, after []func(*corev1.Pod)
		want          []string // after, beside the pod
	}{
		{
			"an ephemeral container adds what it names", nil,
			[]func(*corev1.Pod){withEphemeralContainer("debug", secretEnv("tools"))},
			[]string{"secret shop/tools"},
		},
		{
			"a template's claim appears in the status",
			[]func(*corev1.Pod){template},
			[]func(*corev1.Pod){template, status("api-gpu-x7c2p")},
			[]string{"resourceclaim shop/api-gpu-x7c2p"},
		},
		{
			"a template's claim changes in the status",
			[]func(*corev1.Pod){template, status("old")},
			[]func(*corev1.Pod){template, status("new")},
			[]string{"resourceclaim shop/new"},
		},
		{
			"a template's claim leaves the status",
			[]func(*corev1.Pod){template, status("old")},
			[]func(*corev1.Pod){template},
			nil,
		},
		{
			"an extended resource claim appears in the status", nil,
			[]func(*corev1.Pod){extended("api-extended")},
			[]string{"resourceclaim shop/api-extended"},
		},
		{"an extended resource claim leaves the status", []func(*corev1.Pod){extended("api-extended")}, nil, nil},
		{
			"a volume is replaced by one of the same name",
			[]func(*corev1.Pod){withVolume("data", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "old"}})},
			[]func(*corev1.Pod){withVolume("data", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "new"}})},
			[]string{"secret shop/new"},
		},
		{
			"the same references in another order",
			[]func(*corev1.Pod){withSecret("a"), withSecret("b")},
			[]func(*corev1.Pod){withSecret("b"), withSecret("a")},
			[]string{"secret shop/a", "secret shop/b"},
		},
		{
			"one of two references to an object goes",
			[]func(*corev1.Pod){withSecret("db"), withEnv("api", secretEnv("db"))},
			[]func(*corev1.Pod){withSecret("db")},
			[]string{"secret shop/db"},
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			g := graph.New()
			g.SetPod(newPod("api", "worker-1", tc.before...))
			g.SetPod(newPod("api", "worker-1", tc.after...))
			want := append([]string{"pod shop/api"}, tc.want...)
			if got := reached(g, "worker-1"); !slices.Equal(got, want) {
				t.Errorf("within reach are %v, want %v", got, want)
			}
			fresh := graph.New()
			fresh.SetPod(newPod("api", "worker-1", tc.after...))
			if got, want := dump(g), dump(fresh); got != want {
				t.Errorf("the update left a trace:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestReferenceIsRenamedInPlace(t *testing.T) {
	g := graph.New()
	g.SetPod(newPod("api", "worker-1", withEnv("first", secretEnv("db"))))
	g.SetPod(newPod("api", "worker-1", withEnv("second", secretEnv("db"))))
	g.SetPod(newPod("web", "worker-1", withEnv("third", secretEnv("tls"))))
	g.SetPod(newPod("job", "worker-1", withEnv("app", secretEnv("token"))))
	g.SetPod(newPod("job", "worker-1", withEnvFrom("app", fromSecret("token"))))
	for secret, field := range map[string]string{
		"db":    "spec.containers[name=second].env",
		"tls":   "spec.containers[name=third].env",
		"token": "spec.containers[name=app].envFrom",
	} {
		if got := g.Path("worker-1", graph.Secret, "shop", secret)[0].Field; got != field {
			t.Errorf("secret %s is named in %s, want %s", secret, got, field)
		}
	}
}

func TestObjectsAreNeitherChangedNorKept(t *testing.T) {
	g := graph.New()
	pod := newPod("api", "worker-1", withServiceAccount("api"), withSecret("db"), withEnv("api", configEnv("settings")),
		withClaim("orders"))
	pv := newVolume("pv-1", "orders", stageSecret("vault", "key"))
	podBefore, pvBefore := pod.DeepCopy(), pv.DeepCopy()
	g.SetPod(pod)
	g.SetPersistentVolume(pv)
	if !reflect.DeepEqual(pod, podBefore) || !reflect.DeepEqual(pv, pvBefore) {
		t.Error("Set changed its object")
	}

	before := dump(g)
	pod.Spec.NodeName, pod.Spec.Volumes[0].Secret.SecretName, pv.Spec.ClaimRef.Name = "worker-2", "other", "other"
	if got := dump(g); got != before {
		t.Errorf("the graph followed a change of an object that was set:\n%s\nbefore:\n%s", got, before)
	}
}

func TestSettingTwiceIsSettingOnce(t *testing.T) {
	g := graph.New()
	sets := []func(){
		func() {
			g.SetPod(newPod("api", "worker-1", withSecret("db"), withSecret("db"), withClaim("orders"), withClaim("orders")))
		},
		func() { g.SetPersistentVolume(newVolume("pv-1", "orders", stageSecret("vault", "key"))) },
		func() { g.SetVolumeAttachment(newAttachment("va", "worker-1")) },
		func() { g.SetResourceSlice(newSlice("slice", new("worker-1"))) },
		func() { g.SetPodCertificateRequest(newRequest("pcr", "worker-1")) },
	}
	for _, set := range sets {
		set()
	}
	once := dump(g)
	for range 3 {
		for _, set := range sets {
			set()
		}
	}
	if got := dump(g); got != once {
		t.Errorf("after setting all again:\n%s\nwant:\n%s", got, once)
	}
	g.DeletePod("shop", "api")
	g.DeletePersistentVolume("pv-1")
	g.DeleteVolumeAttachment("va")
	g.DeleteResourceSlice("slice")
	g.DeletePodCertificateRequest("shop", "pcr")
	checkEmpty(t, g)
}
