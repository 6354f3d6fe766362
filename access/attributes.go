package access

import (
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// FromAttributes sets req from attributes of k8s.io/apiserver. It overwrites all
// fields. Requirements of selectors that could not be parsed are left out, which
// makes the request broader, never narrower.
func FromAttributes(attrs authorizer.Attributes, req *Request) {
	// Pointers to records, which is what kube-apiserver passes, are read directly:
	// each of their methods copies the whole record.
	if record, ok := attrs.(*authorizer.AttributesRecord); ok {
		fromRecord(record, req)
		return
	}
	req.setUser(attrs.GetUser())
	req.Verb, req.ResourceRequest = attrs.GetVerb(), attrs.IsResourceRequest()
	req.Group, req.Version = attrs.GetAPIGroup(), attrs.GetAPIVersion()
	req.Resource, req.Subresource = attrs.GetResource(), attrs.GetSubresource()
	req.Namespace, req.Name, req.Path = attrs.GetNamespace(), attrs.GetName(), attrs.GetPath()
	req.FieldSelector, _ = attrs.GetFieldSelector()
	req.LabelSelector, _ = attrs.GetLabelSelector()
}

// fromRecord sets each field separately: a composite literal would be built and then
// copied, which takes as long as many a decision.
func fromRecord(r *authorizer.AttributesRecord, req *Request) {
	req.setUser(r.User)
	req.Verb, req.ResourceRequest = r.Verb, r.ResourceRequest
	req.Group, req.Version, req.Resource, req.Subresource = r.APIGroup, r.APIVersion, r.Resource, r.Subresource
	req.Namespace, req.Name, req.Path = r.Namespace, r.Name, r.Path
	req.FieldSelector, req.LabelSelector = r.FieldSelectorRequirements, r.LabelSelectorRequirements
}

func (req *Request) setUser(u user.Info) {
	if u == nil {
		req.User, req.UID, req.Groups, req.Extra = "", "", nil, nil
		return
	}
	req.User, req.UID, req.Groups, req.Extra = u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra()
}

// Attributes returns the request as attributes of k8s.io/apiserver. It shares slices
// and maps with the request.
func (req *Request) Attributes() *authorizer.AttributesRecord {
	return &authorizer.AttributesRecord{
		User:            &user.DefaultInfo{Name: req.User, UID: req.UID, Groups: req.Groups, Extra: req.Extra},
		Verb:            req.Verb,
		ResourceRequest: req.ResourceRequest,
		APIGroup:        req.Group, APIVersion: req.Version, Resource: req.Resource, Subresource: req.Subresource,
		Namespace: req.Namespace, Name: req.Name, Path: req.Path,
		FieldSelectorRequirements: req.FieldSelector, LabelSelectorRequirements: req.LabelSelector,
	}
}
