package mappings

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/informer"
)

// identityMappings is the custom resource of aws-iam-authenticator.
func identityMappings() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "iamauthenticator.k8s.aws", Version: "v1alpha1", Resource: "iamidentitymappings"}
}

func (l *Live) followIdentityMappings(ctx context.Context, s *source, client dynamic.Interface) {
	resource := client.Resource(identityMappings())
	followObjects(ctx, s, informer.Source[*unstructured.UnstructuredList]{
		Name: identityMappings().Resource, Example: &unstructured.Unstructured{}, List: resource.List, Watch: resource.Watch,
	}, "install the custom resource IAMIdentityMapping and let the server's user list and watch it, or remove IdentityMapping from "+
		"iam.sources", func(store cache.Store) { s.apply(readIdentityMappings(store.List())) })
}

// readIdentityMappings parses the objects in the order of their names.
func readIdentityMappings(objects []any) (*iam.Mappings, []finding.Finding) {
	sorted := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		sorted = append(sorted, object.(*unstructured.Unstructured))
	}
	slices.SortFunc(sorted, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	var read []iam.Mapping
	var findings []finding.Finding
	for _, object := range sorted {
		mapping, found, ok := readIdentityMapping(object)
		findings = append(findings, found...)
		if ok || mapping.Unusable {
			read = append(read, mapping)
		}
	}
	collected, twice := iam.Collect(read)
	return collected, append(findings, twice...)
}

func readIdentityMapping(object *unstructured.Unstructured) (iam.Mapping, []finding.Finding, bool) {
	var read struct {
		Spec struct {
			ARN      string   `json:"arn"`
			Username string   `json:"username"`
			Groups   []string `json:"groups"`
		} `json:"spec"`
	}
	name := object.GetName()
	arn, _, _ := unstructured.NestedString(object.Object, "spec", "arn")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		unusable, _, _ := iam.ParseIdentityMapping(name, arn, "", nil)
		return unusable, []finding.Finding{{
			Code: iam.MappingInvalid, Severity: finding.Error, Place: finding.Place{Object: "IAMIdentityMapping " + name, Key: "spec"},
			Message:     "it does not match its schema: " + err.Error(),
			Consequence: "the mapping is not used, and no other one for the same ARN counts",
			Remedy:      "write strings into arn and username, and a list of strings into groups",
		}}, false
	}
	return iam.ParseIdentityMapping(name, read.Spec.ARN, read.Spec.Username, read.Spec.Groups)
}
