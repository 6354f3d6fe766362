package containment

import (
	"context"
	"strings"
)

// created returns the body of a create about a node.
func (p *prober) created(ctx context.Context, r resource, t target, node string) object {
	name := t.name
	if name == "" {
		name = node
	}
	namespace := ""
	if r.namespaced {
		namespace = inNamespace(t.namespace)
	}
	o := object{"metadata": meta(namespace, name)}
	main, subresource, _ := strings.Cut(r.name, "/")
	switch {
	case r.name == "serviceaccounts/token":
		return p.tokenRequest(ctx, t, node)
	case r.name == "pods/eviction":
		o["apiVersion"], o["kind"] = "policy/v1", "Eviction"
		return o
	case r.name == "pods/binding":
		o["apiVersion"], o["kind"], o["target"] = "v1", "Binding", object{"kind": "Node", "name": node}
		return o
	case subresource != "":
		return nil
	}
	switch main {
	case "events":
		o["metadata"] = meta(namespace, "event-of-"+node)
		if r.group == "" {
			o["involvedObject"] = object{"kind": "Pod", "namespace": namespace, "name": name}
			break
		}
		o["regarding"] = object{"kind": "Pod", "namespace": namespace, "name": name}
		o["eventTime"], o["reportingController"], o["reportingInstance"] = "2026-01-01T00:00:00.000000Z", "example.com/test", node
		o["action"], o["reason"], o["type"] = "Test", "Test", "Normal"
	case "leases":
		o["spec"] = object{"holderIdentity": node}
	case "csinodes":
		o["spec"] = object{"drivers": []any{}}
	case "pods":
		return podObject(namespace, "new-of-"+node, "app", node)
	case "tokenreviews":
		return object{"spec": object{"token": "none"}}
	case "subjectaccessreviews", "selfsubjectaccessreviews":
		spec := object{"resourceAttributes": object{"verb": "get", "resource": "pods"}}
		if main == "subjectaccessreviews" {
			spec["user"] = "nobody"
		}
		return object{"spec": spec}
	case "volumeattachments":
		o["spec"] = object{"attacher": "csi.example.com", "nodeName": node, "source": object{"persistentVolumeName": "none"}}
	default:
		o["apiVersion"], o["kind"] = r.apiVersion(), r.kind
	}
	return o
}

// tokenRequest asks for a token that is bound to a pod on a node, or to nothing if the account has no pods.
func (p *prober) tokenRequest(ctx context.Context, t target, node string) object {
	pod, namespace := appPod(node), appNamespace
	switch t.name {
	case "app":
	case p.agent.account.Name:
		pod, namespace = agentPod(t.name, node), p.agent.account.Namespace
	default:
		return object{"spec": object{}}
	}
	var bound struct{ Metadata struct{ UID string } }
	_ = p.admin.must(ctx, get(podsPath(namespace)+"/"+pod), &bound) // without a UID, the API server refuses the token
	ref := object{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": bound.Metadata.UID}
	return object{"spec": object{"boundObjectRef": ref}}
}
