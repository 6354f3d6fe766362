package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestRandomWrites sends the same writes about the same states, under random feature
// gates, to the in-tree NodeRestriction and to ours: as a function, as an admission
// plugin with internal objects, and as a webhook with a document.
func TestRandomWrites(t *testing.T) {
	b := readBudget(t)
	covered := newWriteCoverage()
	for _, seed := range b.seeds(b.clusters) {
		latestWrites(t, seed).run(t, b.writes, covered)
		if covered.divergences > maxDivergences {
			break
		}
	}
	covered.check(t)
	t.Logf("%d writes over %d states, %d of them as documents, %d as an admission plugin: %d divergences",
		covered.total, b.clusters, covered.documents, covered.plugins, covered.divergences)
}

// writeTrial is one comparison of one state.
type writeTrial struct {
	seed     uint64
	features kubeversion.Features
	gates    map[string]bool
	state    *generate.State
	ours     *noderestriction.Restriction
	asked    *ourGrants
	theirs   *intree.Restriction
	// spared is the in-tree plugin over the state that spare returns.
	spared  *intree.Restriction
	theyAsk *theirGrants
}

func latestWrites(t *testing.T, seed uint64) *writeTrial {
	t.Helper()
	features, gates := randomFeatures(t, rand.New(rand.NewPCG(seed, 1)), kubeversion.Latest)
	return latestWritesWith(t, seed, features, gates)
}

func latestWritesWith(t *testing.T, seed uint64, features kubeversion.Features, gates map[string]bool) *writeTrial {
	t.Helper()
	s := generate.NewState(seed)
	tr := &writeTrial{seed: seed, features: features, gates: gates, state: s, asked: &ourGrants{policy: rbac.NewPolicy()}}
	fill(tr.asked.policy, s.Policy)
	tr.ours = noderestriction.New(newKnown(s), tr.asked, features)
	tr.theyAsk = &theirGrants{UnconditionalAuthorizer: inTreePolicy(s.Policy)}
	for side, state := range map[**intree.Restriction]*generate.State{&tr.theirs: s, &tr.spared: spare(s)} {
		theirs, err := intree.NewRestriction(state, gates, tr.theyAsk)
		if err != nil {
			t.Fatal(err)
		}
		*side = theirs
	}
	return tr
}

// run sends n writes to both.
func (tr *writeTrial) run(t *testing.T, n int, covered *writeCoverage) {
	t.Helper()
	writer := generate.NewWriter(tr.seed, tr.state)
	for i := range n {
		w := writer.Next()
		tr.asked.asked, tr.theyAsk.asked = nil, nil
		theirs := tr.theirAnswer(t, w, covered)
		ours := tr.ours.Decide(context.Background(), writeRequest(w))
		if difference := listedDifference(w, ours, theirs); difference != "" {
			covered.listed[difference]++
		} else if problem := tr.compare(w, ours, theirs); problem != "" {
			covered.divergences++
			tr.report(t, w, ours, theirs, problem)
		}
		covered.count(t, w, ours, theirs)
		switch i % 5 {
		case 0:
			covered.documents++
			covered.divergences += tr.asDocument(t, w, ours, theirs)
		case 1:
			covered.plugins++
			covered.divergences += tr.asPlugin(t, w, ours)
		}
		if covered.divergences > maxDivergences {
			return
		}
	}
}

// theirAnswer calls the in-tree plugin. If it panics, it is called again with a state in
// which the volume that causes the panic fails to translate.
func (tr *writeTrial) theirAnswer(t *testing.T, w *generate.Write, covered *writeCoverage) intree.Admitted {
	t.Helper()
	theirs, err := tr.theirs.Admit(w)
	if err == nil && theirs.Panicked {
		covered.listed["csi-translation-lib panics on an inline vSphere volume with a storage policy; we answer as when a "+
			"translation fails"]++
		theirs, err = tr.spared.Admit(w)
	}
	if err != nil || theirs.Panicked {
		t.Fatalf("seed %d: %s: %v %s", tr.seed, w, err, theirs.Message)
	}
	return theirs
}

// spare returns the state with volumes that make Kubernetes' translation panic replaced
// by others that fail to translate.
func spare(s *generate.State) *generate.State {
	spared := *s
	spared.Pods = nil
	for _, pod := range s.Pods {
		pod = pod.DeepCopy()
		for i := range pod.Spec.Volumes {
			if v := &pod.Spec.Volumes[i]; v.VsphereVolume != nil && v.VsphereVolume.StoragePolicyName != "" {
				v.VolumeSource = corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{Kind: new(corev1.AzureDedicatedBlobDisk)}}
			}
		}
		spared.Pods = append(spared.Pods, pod)
	}
	return &spared
}

// compare describes the difference between both answers, if any.
func (tr *writeTrial) compare(w *generate.Write, ours noderestriction.Answer, theirs intree.Admitted) string {
	allowed := ours.Decision == verdict.Allow
	switch {
	case allowed != (theirs.Status == 200):
		return "the decision"
	case ours.Status != theirs.Status:
		return "the HTTP status"
	case ours.StatusReason != theirs.Reason:
		return "the status reason"
	case !reflect.DeepEqual(tr.asked.asked, tr.theyAsk.asked):
		return fmt.Sprintf("what the authorizer is asked: in-tree %+v, ours %+v", tr.theyAsk.asked, tr.asked.asked)
	}
	return ""
}

// listedDifference returns the name of an intended difference between both answers.
func listedDifference(w *generate.Write, ours noderestriction.Answer, theirs intree.Admitted) string {
	pod, _ := w.Object.(*corev1.Pod)
	if theirs.Status == 200 && ours.Code == noderestriction.MirrorPodRefersToObject && pod != nil &&
		slices.ContainsFunc(pod.Spec.Volumes, hasTwoSources) {
		return "a volume with two sources: in-tree one source that is free of references will do, and validation refuses " +
			"the pod; we refuse it"
	}
	return ""
}

func hasTwoSources(v corev1.Volume) bool {
	set := 0
	for _, field := range reflect.ValueOf(v.VolumeSource).Fields() {
		if !field.IsNil() {
			set++
		}
	}
	return set > 1
}

// asPlugin sends the write to our admission plugin like an API server.
func (tr *writeTrial) asPlugin(t *testing.T, w *generate.Write, ours noderestriction.Answer) int {
	t.Helper()
	attributes, err := intree.WriteAttributes(w)
	if err != nil {
		t.Fatal(err)
	}
	got := intree.Admitted{Status: 200}
	if tr.ours.Handles(attributes.GetOperation()) {
		got = intree.StatusOf(tr.ours.Validate(context.Background(), attributes,
			admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)))
	}
	if got.Status == ours.Status && got.Reason == ours.StatusReason {
		return 0
	}
	t.Errorf("seed %d: %s\n  as an admission plugin: %d %s %s\n  as a function: %d %s %s",
		tr.seed, w, got.Status, got.Reason, got.Message, ours.Status, ours.StatusReason, ours.Reason.Message)
	return 1
}

func writeRequest(w *generate.Write) *noderestriction.Request {
	return &noderestriction.Request{
		User: w.User, UID: w.UID, Groups: w.Groups, Extra: w.Extra, Operation: noderestriction.Operation(w.Operation),
		Group: w.Group, Version: w.Version, Resource: w.Resource, Subresource: w.Subresource, Namespace: w.Namespace, Name: w.Name,
		Object: w.Object, OldObject: w.OldObject,
	}
}

// report prints a divergence with the data that is needed to repeat it.
func (tr *writeTrial) report(t *testing.T, w *generate.Write, ours noderestriction.Answer, theirs intree.Admitted, problem string) {
	t.Helper()
	t.Errorf("seed %d, Kubernetes %s, gates %v\n  asked: %s\n  differs: %s\n  in-tree: %d %s %s\n  ours: %d %s %s: %s "+
		"(%s; %v)\n  object: %s\n  old object: %s",
		tr.seed, tr.features.Minor(), tr.gates, w, problem, theirs.Status, theirs.Reason, theirs.Message,
		ours.Status, ours.StatusReason, ours.Code, ours.Reason.Message, ours.Rule, ours.Err, text(w.Object), text(w.OldObject))
}

func text(object any) string {
	b, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
