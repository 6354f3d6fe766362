package mappings

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/informer"
)

// SourceMissing is the code of a source that does not exist. Deleting a source removes its
// mappings.
const SourceMissing finding.Code = "MappingSourceMissing"

// followConfigMap follows the ConfigMap by its name, because the role grants access to no
// other.
func (l *Live) followConfigMap(ctx context.Context, s *source, client kubernetes.Interface) {
	all := client.CoreV1().ConfigMaps(l.opts.Namespace)
	byName := fields.OneTermEqualSelector(metav1.ObjectNameField, l.opts.Name).String()
	followObjects(ctx, s, informer.Source[*corev1.ConfigMapList]{
		Name: "configmaps", Example: &corev1.ConfigMap{},
		List: func(ctx context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
			options.FieldSelector = byName
			return all.List(ctx, options)
		},
		Watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = byName
			return all.Watch(ctx, options)
		},
	}, fmt.Sprintf("let the server's user list and watch the ConfigMap %s in namespace %s, by its name", l.opts.Name,
		l.opts.Namespace), func(store cache.Store) { l.readConfigMap(s, store) })
}

func (l *Live) readConfigMap(s *source, store cache.Store) {
	object, found, err := store.GetByKey(l.opts.Namespace + "/" + l.opts.Name)
	if err != nil || !found {
		nothing, _ := iam.Collect(nil)
		s.apply(nothing, []finding.Finding{l.missing(s)})
		return
	}
	read := object.(*corev1.ConfigMap)
	record(l.events, read, s.apply(iam.ParseConfigMap(read.Data, s.name, finding.Place{Object: s.name})))
}

func (l *Live) missing(s *source) finding.Finding {
	return finding.Finding{
		Code: SourceMissing, Severity: finding.Warning, Place: finding.Place{Object: s.name},
		Message:     "there is no such ConfigMap",
		Consequence: "it maps no caller: no caller is authenticated by this source",
		Remedy:      "create it, or remove ConfigMap from iam.sources",
	}
}
