package manifests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// WaitForPods waits until every Deployment and DaemonSet of the cluster has all its pods,
// and every pod runs and is ready. If the context ends first, the error lists the objects
// that are not ready. It returns the pods, sorted by namespace and name.
func WaitForPods(ctx context.Context, config *rest.Config) ([]corev1.Pod, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("wait for pods: %w", err)
	}
	var pods []corev1.Pod
	var waiting []string
	err = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, missing, err := listPods(ctx, client)
		if err != nil {
			// The request may have failed because of the deadline. Then the previous
			// result is more useful.
			if ctx.Err() != nil {
				return false, nil
			}
			return false, err
		}
		pods, waiting = now, missing
		return len(missing) == 0, nil
	})
	if err != nil {
		if len(waiting) > 0 {
			return pods, fmt.Errorf("wait for pods: %w; not ready:\n  %s", err, strings.Join(waiting, "\n  "))
		}
		return pods, fmt.Errorf("wait for pods: %w", err)
	}
	return pods, nil
}

func listPods(ctx context.Context, client kubernetes.Interface) (pods []corev1.Pod, missing []string, err error) {
	deployments, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, d := range deployments.Items {
		if !deploymentReady(&d) {
			missing = append(missing,
				fmt.Sprintf("Deployment %s/%s has %d of %d pods ready", d.Namespace, d.Name, d.Status.ReadyReplicas, *d.Spec.Replicas))
		}
	}
	daemonSets, err := client.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, d := range daemonSets.Items {
		if d.Status.ObservedGeneration < d.Generation || d.Status.NumberReady < d.Status.DesiredNumberScheduled ||
			d.Status.DesiredNumberScheduled == 0 {
			missing = append(missing,
				fmt.Sprintf("DaemonSet %s/%s has %d of %d pods ready", d.Namespace, d.Name, d.Status.NumberReady,
					d.Status.DesiredNumberScheduled))
		}
	}
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, pod := range list.Items {
		if reason := notReady(&pod); reason != "" {
			missing = append(missing, fmt.Sprintf("Pod %s/%s: %s", pod.Namespace, pod.Name, reason))
		}
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list.Items, missing, nil
}

func deploymentReady(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.ReadyReplicas == *d.Spec.Replicas
}

// notReady returns why a pod is not ready, or an empty text.
func notReady(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded {
		return ""
	}
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.Status.Phase == corev1.PodRunning:
			return ""
		case condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse:
			return "not scheduled: " + condition.Message
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil {
			return strings.TrimSpace(status.State.Waiting.Reason + " " + status.State.Waiting.Message)
		}
	}
	return string(pod.Status.Phase)
}
