package source

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// APIServices say which versions of API groups kube-apiserver passes on to other servers.
const APIServices Kinds = 1 << kindAPIService

// apiServiceVersion is the version in which APIServices are read.
var apiServiceVersion = schema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"}

// apiService is the kept part of an APIService. kube-apiserver serves the version itself if it has no service.
// Source: https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/api-service-v1/
type apiService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              apiServiceSpec `json:"spec,omitempty"`
}

type apiServiceSpec struct {
	Group   string    `json:"group,omitempty"`
	Version string    `json:"version,omitempty"`
	Service *struct{} `json:"service,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *apiService) DeepCopyObject() runtime.Object {
	c := *s
	s.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// apiServiceList is a list of APIServices.
type apiServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []apiService `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *apiServiceList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]apiService, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*apiService)
	}
	return &c
}

// addAPIServices registers the types. Client-go has none.
func addAPIServices(s *runtime.Scheme) error {
	info := kindAPIService.describe()
	s.AddKnownTypeWithName(apiServiceVersion.WithKind(info.name), &apiService{})
	s.AddKnownTypeWithName(apiServiceVersion.WithKind(info.name+"List"), &apiServiceList{})
	metav1.AddToGroupVersion(s, apiServiceVersion)
	return nil
}

// APIServiceGap is the APIService that files lack for a version of a group; with the version "" or "*", any of the group.
func (s *State) APIServiceGap(group, version string) Gap {
	gap := Gap{
		Resource: kindAPIService.describe().groupResource(), Lacks: "the APIService " + version + "." + group,
		Because: ", which says whether another API server serves it",
	}
	if version == "" || version == "*" {
		gap.Lacks, gap.Because = "the APIServices of "+group, ", which say whether another API server serves it"
	}
	return gap
}

// Aggregation returns which versions of API groups kube-apiserver passes on to other servers. It must not be changed. Of
// files that are not complete, and if APIServices could not be read, it knows the versions of Kubernetes itself and those
// that an APIService names. A State of [Watch] needs [LiveOptions].APIServices, and a partial one that they have been read.
func (s *State) Aggregation() *nodescope.Aggregation {
	if known := s.aggregation.Load(); known != nil {
		return known
	}
	readAll, ofCluster := s.HasRead(Part{Kinds: APIServices}), s.Partial() && !s.OfFile()
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, missing := s.facts.missing[kindAPIService]
	a := &nodescope.Aggregation{Complete: (s.facts.complete || ofCluster) && readAll && !missing}
	for _, r := range s.objects.others[kindAPIService] {
		spec := r.record.(apiServiceSpec)
		version := schema.GroupVersion{Group: spec.Group, Version: spec.Version}
		if spec.Service != nil {
			a.Versions = append(a.Versions, version)
		} else {
			a.Local = append(a.Local, version)
		}
	}
	slices.SortFunc(a.Versions, func(x, y schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Version, y.Version))
	})
	if a.Complete {
		a.Local = nil
		s.aggregation.Store(a) // a change clears it, and needs the lock
		return a
	}
	for _, r := range resources.BuiltIn() {
		for _, v := range r.Versions {
			if version := (schema.GroupVersion{Group: r.Group, Version: v}); !slices.Contains(a.Local, version) {
				a.Local = append(a.Local, version)
			}
		}
	}
	return a
}
