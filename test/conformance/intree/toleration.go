package intree

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/plugin/pkg/admission/extendedresourcetoleration"
)

// Tolerate is the in-tree ExtendedResourceToleration.
type Tolerate struct{ plugin admission.MutationInterface }

// NewTolerate returns the plugin.
func NewTolerate() (*Tolerate, error) {
	plugins := admission.NewPlugins()
	extendedresourcetoleration.Register(plugins)
	plugin, err := plugins.InitPlugin(extendedresourcetoleration.PluginName, strings.NewReader(""), admission.PluginInitializers{})
	if err != nil {
		return nil, err
	}
	mutation, ok := plugin.(admission.MutationInterface)
	if !ok {
		return nil, fmt.Errorf("%T does not change objects", plugin)
	}
	return &Tolerate{mutation}, nil
}

// Tolerations returns the tolerations of the pod after its creation.
func (p *Tolerate) Tolerations(pod *corev1.Pod) ([]corev1.Toleration, error) {
	object, err := internal(pod.DeepCopy())
	if err != nil {
		return nil, err
	}
	attributes := admission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "", "",
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	if err := p.plugin.Admit(context.Background(), attributes, nil); err != nil {
		return nil, err
	}
	after, err := legacyscheme.Scheme.ConvertToVersion(object, schema.GroupVersion{Version: "v1"})
	if err != nil {
		return nil, err
	}
	return after.(*corev1.Pod).Spec.Tolerations, nil
}
