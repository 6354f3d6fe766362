package deploy

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// The number of parts is in three places.
func TestAuditJobsAgreeOnTheParts(t *testing.T) {
	job, merge := auditJobs(t)
	spec := &job.Spec
	if *spec.CompletionMode != batchv1.IndexedCompletion {
		t.Errorf("the completion mode is %s: pods have no index", *spec.CompletionMode)
	}
	if *spec.Parallelism > *spec.Completions {
		t.Errorf("%d pods at once for %d parts", *spec.Parallelism, *spec.Completions)
	}
	if part := fmt.Sprint("--part=", *spec.Completions); !slices.Contains(spec.Template.Spec.Containers[0].Args, part) {
		t.Errorf("the arguments are %v, want %s", spec.Template.Spec.Containers[0].Args, part)
	}
	pattern := fmt.Sprintf("/reports/part-*-of-%05d.json", *spec.Completions)
	if args := merge.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, pattern) {
		t.Errorf("the arguments of the merge are %v, want %s", args, pattern)
	}
}

// A log that cannot be read fails its part at once; a pod that is lost is replaced. Both need
// that pods are not restarted in place.
func TestAuditJobRetriesPartsAlone(t *testing.T) {
	job, merge := auditJobs(t)
	if limit := job.Spec.BackoffLimitPerIndex; limit == nil || *limit == 0 {
		t.Error("a lost pod fails its part")
	}
	var actions []batchv1.PodFailurePolicyAction
	for _, rule := range job.Spec.PodFailurePolicy.Rules {
		actions = append(actions, rule.Action)
		container := job.Spec.Template.Spec.Containers[0].Name
		if exit := rule.OnExitCodes; exit != nil && (!slices.Equal(exit.Values, []int32{2}) || *exit.ContainerName != container) {
			t.Errorf("the part fails for %v", exit)
		}
	}
	want := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailIndex}
	if !slices.Equal(actions, want) {
		t.Errorf("the actions are %v, want %v", actions, want)
	}
	if *merge.Spec.BackoffLimit != 0 {
		t.Error("a report with refusals is made again")
	}
}

func TestAuditJobsAreRestricted(t *testing.T) {
	job, merge := auditJobs(t)
	for _, j := range []*batchv1.Job{job, merge} {
		pod := &j.Spec.Template.Spec
		checkRestricted(t, &j.Spec.Template)
		if pod.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("%s: pods are restarted: %s", j.Name, pod.RestartPolicy)
		}
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pods have a token", j.Name)
		}
		for _, m := range pod.Containers[0].VolumeMounts {
			if writable := j == job && m.Name == "reports"; m.ReadOnly == writable {
				t.Errorf("%s: volume %s, read-only: %t", j.Name, m.Name, m.ReadOnly)
			}
		}
	}
	objects := built(t, "audit")
	if namespace := only[*corev1.Namespace](t, objects); namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Error("the namespace does not enforce the restricted pod security standard")
	}
	claim := only[*corev1.PersistentVolumeClaim](t, objects)
	if !slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) {
		t.Errorf("the access modes of the reports are %v", claim.Spec.AccessModes)
	}
	for _, j := range []*batchv1.Job{job, merge} {
		if !slices.ContainsFunc(j.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim.ClaimName == claim.Name
		}) {
			t.Errorf("%s does not use the claim %s", j.Name, claim.Name)
		}
	}
}

func auditJobs(t *testing.T) (job, merge *batchv1.Job) {
	t.Helper()
	return only[*batchv1.Job](t, built(t, "audit")), only[*batchv1.Job](t, built(t, "audit/merge"))
}
