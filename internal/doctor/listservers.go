package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/finding"
)

// openShift reads the API servers of OpenShift, if no other was found.
func (l *lister) openShift(ctx context.Context) error {
	if len(l.cluster.APIServers) > 0 {
		return errNotNeeded
	}
	err := pages(ctx, l, "pods", metav1.ListOptions{
		LabelSelector: "app=" + openShiftNamespace,
	}, func(ctx context.Context, o metav1.ListOptions) ([]corev1.Pod, string, error) {
		list, err := l.client.CoreV1().Pods(openShiftNamespace).List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.Continue, nil
	}, l.addPod)
	if err == nil {
		err = l.openShiftConfigs(ctx)
	}
	if apierrors.IsForbidden(err) {
		return errNotNeeded
	}
	return err
}

// errNotNeeded is returned for a resource that is not needed. A check that needs it detects that it
// is missing.
var errNotNeeded = errors.New("not read")

// openShiftConfigs reads the configuration of OpenShift's API servers.
func (l *lister) openShiftConfigs(ctx context.Context) error {
	read := map[string]bool{}
	for _, a := range l.cluster.APIServers {
		if last(a.command, flagOpenShift) == "" {
			continue
		}
		for _, name := range []string{"config-" + a.Revision, "config"} {
			if read[name] {
				break
			}
			m, err := l.client.CoreV1().ConfigMaps(openShiftNamespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			read[name] = true
			flags, err := openShiftFlags([]byte(m.Data["config.yaml"]))
			if err != nil {
				return fmt.Errorf("ConfigMap %s/%s: data.config.yaml: %w", openShiftNamespace, name, err)
			}
			l.cluster.APIServerConfigs = append(l.cluster.APIServerConfigs, APIServerConfig{
				Place: finding.Place{Object: "ConfigMap " + openShiftNamespace + "/" + name, Key: "data.config.yaml"}, Name: name,
				Flags: flags,
			})
			break
		}
	}
	return nil
}

// webhooks reads the webhooks, if an API server does not have NodeRestriction, to find
// node-authorizer's.
func (l *lister) webhooks(ctx context.Context) error {
	l.cluster.complete()
	if !slices.ContainsFunc(l.cluster.APIServers, func(a APIServer) bool { return a.Unseen == "" && !a.nodeRestriction() }) {
		return errNotNeeded
	}
	return pages(ctx, l, "mutatingwebhookconfigurations", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (
		[]admissionv1.MutatingWebhookConfiguration, string, error,
	) {
		list, err := l.client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, o)
		if err != nil {
			return nil, "", err
		}
		return list.Items, list.Continue, nil
	}, func(w *admissionv1.MutatingWebhookConfiguration) {
		for _, hook := range w.Webhooks {
			l.cluster.addWebhook(hook.Name, hook.FailurePolicy, finding.Place{Object: "MutatingWebhookConfiguration " + w.Name})
		}
	})
}
