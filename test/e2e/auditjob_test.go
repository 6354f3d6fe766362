package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

const (
	auditNamespace = "node-authorizer-audit"
	auditFolder    = "../../deploy/audit"
)

// jobVolumes are the folders behind the volumes of the Jobs of deploy/audit.
type jobVolumes struct{ program, input, reports string }

// run acts as the kubelet of a pod: it runs the command of its container, with its
// environment, until that exits.
func (v *jobVolumes) run(t *testing.T, pod *corev1.Pod) (stdout string, status int) {
	t.Helper()
	container := &pod.Spec.Containers[0]
	paths := strings.NewReplacer("/input/", v.input+"/", "/reports", v.reports)
	var args []string
	for _, arg := range container.Args {
		args = append(args, paths.Replace(arg))
	}
	cmd := exec.CommandContext(t.Context(), v.program, args...)
	cmd.Env = []string{}
	for _, env := range container.Env {
		if env.ValueFrom != nil {
			env.Value = pod.Labels[strings.TrimSuffix(strings.TrimPrefix(env.ValueFrom.FieldRef.FieldPath, "metadata.labels['"), "']")]
		}
		cmd.Env = append(cmd.Env, env.Name+"="+env.Value)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	exit := new(exec.ExitError)
	if err := cmd.Run(); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: status %d: %s", pod.Name, status, said.String())
	return out.String(), status
}

// TestAuditJobMakesTheReportOfOneRun installs deploy/audit. The API server accepts the Jobs and
// the controller makes their pods; the test runs their containers, because the volumes do not
// exist. The API server wrote the log.
func TestAuditJobMakesTheReportOfOneRun(t *testing.T) {
	c := client(t, shop.Plane)
	dir := t.TempDir()
	v := &jobVolumes{filepath.Join(dir, "node-authorizer"), filepath.Join(dir, "input"), filepath.Join(dir, "reports")}
	if err := server.Build(t.Context(), "../..", v.program); err != nil {
		t.Fatal(err)
	}
	_, err := shop.as(t, "web-1").CoreV1().Secrets("payments").Get(t.Context(), "nothing", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Fatalf("a secret of no pod: %v", err)
	}
	divideLog(t, filepath.Join(v.input, "logs", "cp-1"))
	if err := os.Mkdir(v.reports, 0o700); err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(v.input, "cluster.snapshot")
	run(t, "snapshot", "-o", snapshot, "--kubeconfig", shop.AdminKubeconfig())

	t.Cleanup(func() {
		if err := c.CoreV1().Namespaces().Delete(context.Background(), auditNamespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for _, file := range []string{"namespace.yaml", "reports.yaml"} {
		if err := apply(t.Context(), shop.Plane, filepath.Join(auditFolder, file)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the namespace has a service account", func(ctx context.Context) error {
		_, err := c.CoreV1().ServiceAccounts(auditNamespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})

	job, exits, _ := v.complete(t, c, "job.yaml", "audit")
	if want := int(*job.Spec.Completions); len(exits) != want || !succeeded(job) {
		t.Fatalf("%d pods of %d ran: %+v", len(exits), want, job.Status)
	}
	if reports, err := os.ReadDir(v.reports); err != nil || len(reports) != len(exits) {
		t.Fatalf("%d reports of %d parts: %v", len(reports), len(exits), err)
	}
	merged, exits, stdout := v.complete(t, c, "merge/job.yaml", "audit-merge")
	if len(exits) != 1 {
		t.Fatalf("%d pods merged", len(exits))
	}
	logs := filepath.Join(v.input, "logs/*/audit*.log*")
	whole := exec.CommandContext(t.Context(), v.program, "audit", "--from", snapshot, "-o", "json", logs)
	var want bytes.Buffer
	whole.Stdout = &want
	exit := new(exec.ExitError)
	if err := whole.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if status := whole.ProcessState.ExitCode(); exits[0] != status || succeeded(merged) != (status == 0) {
		t.Errorf("the exit status is %d, want %d: %+v", exits[0], status, merged.Status)
	}
	difference := differenceOfReports(t, stdout, want.String())
	if !strings.Contains(want.String(), `"NoPathToObject"`) || difference != "" {
		t.Errorf("%s; the merged report is\n%s\nwant\n%s", difference, stdout, want.String())
	}
}

// differenceOfReports says where a merged report differs from the one of one run. The stages of some requests are in files of
// two parts: the merged report says of how many, and counts may be as much larger.
func differenceOfReports(t *testing.T, merged, whole string) string {
	t.Helper()
	var a, b map[string]any
	if err := errors.Join(json.Unmarshal([]byte(merged), &a), json.Unmarshal([]byte(whole), &b)); err != nil {
		t.Fatal(err)
	}
	delete(a, "metadata") // the date and the command line are others
	delete(b, "metadata")
	totals, _ := a["totals"].(map[string]any)
	twice, _ := totals["maybeTwice"].(float64)
	delete(totals, "maybeTwice")
	var compare func(at string, a, b any) string
	compare = func(at string, a, b any) string {
		switch a := a.(type) {
		case map[string]any:
			b, _ := b.(map[string]any)
			if len(a) != len(b) {
				return at + " has other fields"
			}
			for name := range a {
				if difference := compare(at+"."+name, a[name], b[name]); difference != "" {
					return difference
				}
			}
			return ""
		case []any:
			b, _ := b.([]any)
			if len(a) != len(b) {
				return at + " has another length"
			}
			sortWithoutNumbers(t, a)
			sortWithoutNumbers(t, b)
			for i := range a {
				if difference := compare(fmt.Sprint(at, "[", i, "]"), a[i], b[i]); difference != "" {
					return difference
				}
			}
			return ""
		case float64:
			if b, ok := b.(float64); !ok || a < b || a > b+twice {
				return fmt.Sprintf("%s is %v, want %v to %v", at, a, b, b+twice)
			}
			return ""
		}
		if a != b {
			return fmt.Sprintf("%s is %v, want %v", at, a, b)
		}
		return ""
	}
	return compare("report", a, b)
}

// sortWithoutNumbers sorts a list by what its entries have besides numbers: counts that differ change the order of a report.
func sortWithoutNumbers(t *testing.T, list []any) {
	t.Helper()
	number := regexp.MustCompile(`:[0-9.e+]+`)
	text := func(entry any) string {
		encoded, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		return number.ReplaceAllString(string(encoded), ":0")
	}
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(text(a), text(b)) })
}

// divideLog writes the log of the API server as kube-apiserver rotates it.
func divideLog(t *testing.T, into string) {
	t.Helper()
	if err := os.MkdirAll(into, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(shop.audit.Path())
	if err != nil {
		t.Fatal(err)
	}
	const files = 20
	lines := bytes.SplitAfter(text[:bytes.LastIndexByte(text, '\n')+1], []byte{'\n'})
	for i := range files {
		part := bytes.Join(lines[len(lines)*i/files:len(lines)*(i+1)/files], nil)
		name := fmt.Sprintf("audit-2026-01-31T%02d-00-00.000.log", i)
		if i%2 == 0 {
			name += ".gz"
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, writeErr := w.Write(part)
			if err := errors.Join(writeErr, w.Close()); err != nil {
				t.Fatal(err)
			}
			part = b.Bytes()
		}
		if err := os.WriteFile(filepath.Join(into, name), part, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// complete installs a Job and runs its pods until it is complete or failed.
func (v *jobVolumes) complete(t *testing.T, c kubernetes.Interface, file, name string) (job *batchv1.Job, exits []int, stdout string) {
	t.Helper()
	if err := apply(t.Context(), shop.Plane, filepath.Join(auditFolder, file)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job "+name+" ends", func(ctx context.Context) error {
		pods, err := c.CoreV1().Pods(auditNamespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Status.Phase != corev1.PodPending {
				continue
			}
			out, status := v.run(t, pod)
			if err := ended(ctx, c, pod, status); err != nil {
				return err
			}
			exits, stdout = append(exits, status), stdout+out
		}
		if job, err = c.BatchV1().Jobs(auditNamespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, condition := range job.Status.Conditions {
			if condition.Status == corev1.ConditionTrue &&
				(condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
				return nil
			}
		}
		return fmt.Errorf("its status is %+v", job.Status)
	})
	return job, exits, stdout
}

// ended reports the exit status of a pod's container, as its kubelet does. The scheduler
// writes conditions to the pod at the same time.
func ended(ctx context.Context, c kubernetes.Interface, pod *corev1.Pod, status int) error {
	for {
		pod.Status.Phase = corev1.PodSucceeded
		if status != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:  pod.Spec.Containers[0].Name,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(status)}},
		}}
		_, err := c.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return err
		}
		if pod, err = c.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
}

func succeeded(job *batchv1.Job) bool {
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobComplete {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
