package review

import (
	"bytes"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxPlainReview is the maximum size of a review whose strings share the memory of its text.
const maxPlainReview = 4 << 10

// plainReview is a review with memory for parts that most reviews have.
type plainReview struct {
	accessReview
	resource    authorizationv1.ResourceAttributes
	nonResource authorizationv1.NonResourceAttributes
	groups      [4]string
}

// decodePlain decodes a review if it is written as API servers write most. It returns nil for all others. What it
// returns is what the default decoder would return, in less than half the time.
func decodePlain(document []byte, known *extraCache) *accessReview {
	document = bytes.TrimSuffix(document, []byte{'\n'})
	if len(document) > maxPlainReview || !isPlain(document) {
		return nil
	}
	p, r := plainText{rest: string(document)}, &plainReview{}
	p.object(func(name string) {
		switch name {
		case "kind":
			r.Kind = p.text()
		case "apiVersion":
			p.must(r.APIVersion == "") // spec was read as of one version
			r.APIVersion = p.text()
		case "metadata":
			p.expect(`{}`, `{"creationTimestamp":null}`)
		case "spec":
			r.readSpec(&p, known)
		case "status":
			p.expect(`{"allowed":false}`)
		default:
			p.must(false)
		}
	})
	if p.failed || p.rest != "" || r.Kind != accessReviewKind || groupsField(r.APIVersion) == "" {
		return nil
	}
	return &r.accessReview
}

// groupsField returns the name of the field for groups; empty for unknown versions.
func groupsField(apiVersion string) string {
	switch apiVersion {
	case accessReviewVersion:
		return "groups"
	case accessReviewBeta:
		return "group"
	}
	return ""
}

func (r *plainReview) readSpec(p *plainText, known *extraCache) {
	groups := groupsField(r.APIVersion)
	p.must(groups != "")
	spec := &r.Spec
	p.object(func(name string) {
		switch name {
		case "resourceAttributes":
			readResource(p, &r.resource)
			spec.ResourceAttributes = &r.resource
		case "nonResourceAttributes":
			readNonResource(p, &r.nonResource)
			spec.NonResourceAttributes = &r.nonResource
		case "user":
			spec.User = p.text()
		case groups:
			spec.Groups = p.texts(r.groups[:0])
		case "extra":
			p.must(spec.Extra == nil) // the default decoder joins repeated maps
			spec.Extra = readExtra(p, known)
		case "uid":
			spec.UID = p.text()
		default:
			p.must(false)
		}
	})
}

func readResource(p *plainText, into *authorizationv1.ResourceAttributes) {
	p.object(func(name string) {
		switch name {
		case "namespace":
			into.Namespace = p.text()
		case "verb":
			into.Verb = p.text()
		case "group":
			into.Group = p.text()
		case "version":
			into.Version = p.text()
		case "resource":
			into.Resource = p.text()
		case "subresource":
			into.Subresource = p.text()
		case "name":
			into.Name = p.text()
		case "fieldSelector":
			into.FieldSelector = &authorizationv1.FieldSelectorAttributes{}
			readFieldSelector(p, into.FieldSelector)
		default: // label selectors are rare
			p.must(false)
		}
	})
}

func readNonResource(p *plainText, into *authorizationv1.NonResourceAttributes) {
	p.object(func(name string) {
		switch name {
		case "path":
			into.Path = p.text()
		case "verb":
			into.Verb = p.text()
		default:
			p.must(false)
		}
	})
}

func readFieldSelector(p *plainText, into *authorizationv1.FieldSelectorAttributes) {
	p.expect(`{"requirements":`)
	p.list(func() {
		var r metav1.FieldSelectorRequirement
		p.object(func(name string) {
			switch name {
			case "key":
				r.Key = p.text()
			case "operator":
				r.Operator = metav1.FieldSelectorOperator(p.text())
			case "values":
				r.Values = p.texts(nil)
			default:
				p.must(false)
			}
		})
		into.Requirements = append(into.Requirements, r)
	})
	p.expect("}")
}
