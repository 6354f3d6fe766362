package source

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

// object is one kept object of a file.
type object struct {
	kind kind
	api  apiObject
	// encoded is the object as it is written to a snapshot, if requested.
	encoded []byte
	// position is where it is in the file, for messages.
	position manifest.Position
}

// content is the decoded content of documents.
type content struct {
	objects []object
	skipped []string // kinds, with group
	headers []*SnapshotHeader
	// unused are objects of kinds that only an inventory needs, where none is made.
	unused []kind
	// mappings is true if the ConfigMap kube-system/aws-auth is among the documents that are not kept.
	mappings bool
	// templates are objects that pods are made from, if they are asked for.
	templates []addition
}

// decode adds a trimmed object of a file.
func (c *content) decode(d *manifest.Document, opts FileOptions) error {
	if err := d.CheckType(); err != nil {
		return err
	}
	if d.Group() == snapshotGroup {
		header, err := HeaderOf(d)
		if err == nil {
			c.headers = append(c.headers, header)
		}
		return err
	}
	if opts.Templates {
		if made, err := c.template(d); made || err != nil {
			return err
		}
	}
	k, kept := kindOf(d.Group(), d.Kind)
	if !kept {
		c.skipped = append(c.skipped, withGroup(d.Kind, d.Group()))
		return c.note(d)
	}
	if k.describe().inventory && !opts.inventory() {
		c.unused = append(c.unused, k)
		return d.Validate()
	}
	if versions := k.describe().versions; !slices.Contains(versions, d.Version()) {
		return unsupportedVersion(d, versions)
	}
	return c.object(d, k, opts)
}

// note checks a document that is not kept, and notes whether it is the ConfigMap with the identity mappings of EKS.
func (c *content) note(d *manifest.Document) error {
	if d.Group() != "" || d.Kind != "ConfigMap" {
		return d.Validate()
	}
	var known struct {
		Metadata identity `json:"metadata"`
	}
	if err := d.Decode(&known); err != nil {
		return err
	}
	c.mappings = known.Metadata.Namespace == metav1.NamespaceSystem && known.Metadata.Name == "aws-auth"
	return nil
}

// template keeps an object that pods are made from and that nothing else makes, or a pod to create.
func (c *content) template(d *manifest.Document) (bool, error) {
	of, isWorkload := workloadKindOf(d.Group(), d.Kind)
	isPod := d.Group() == "" && d.Kind == "Pod"
	if !isWorkload && !isPod {
		return false, nil
	}
	var known struct {
		Metadata struct {
			UID             types.UID               `json:"uid"`
			OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		} `json:"metadata"`
		Spec struct {
			NodeName string `json:"nodeName"`
		} `json:"spec"`
	}
	if err := d.Decode(&known); err != nil {
		return false, err
	}
	owned := metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: known.Metadata.OwnerReferences}) != nil
	at := addition{file: d.File(), line: d.Line("metadata", "name")}
	switch {
	case isWorkload && owned:
		return false, nil
	case isWorkload:
		var err error
		if at.workload, err = decodeWorkload(d, of, metav1.NamespaceDefault); err != nil {
			return false, err
		}
	case owned || known.Metadata.UID != "" || known.Spec.NodeName != "":
		return false, nil
	default:
		var err error
		if at.object, err = decodeAddition(d, kindPod, metav1.NamespaceDefault); err != nil {
			return false, err
		}
	}
	c.templates = append(c.templates, at)
	return true, nil
}

func unsupportedVersion(d *manifest.Document, versions []string) error {
	return d.Fail(fmt.Errorf("apiVersion %s is not supported; supported versions are %s",
		d.APIVersion, strings.Join(versions, ", ")))
}

// withGroup returns a kind with its group after a dot, as in [State.Skipped].
func withGroup(kind, group string) string { return strings.TrimSuffix(kind+"."+group, ".") }

// object adds an object of a kept kind.
func (c *content) object(d *manifest.Document, k kind, opts FileOptions) error {
	o, err := decodeDocument(d, k, opts.inventory(), metav1.NamespaceDefault)
	if err != nil {
		return err
	}
	out := object{kind: k, api: o, position: d.Position()}
	if opts.Retain {
		encoded, err := encode(k, o)
		if err != nil {
			return d.Fail(err)
		}
		out.encoded = encoded
	}
	c.objects = append(c.objects, out)
	return nil
}

// identity names an object.
type identity struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// decodeDocument decodes and trims the object of a document.
func decodeDocument(d *manifest.Document, k kind, forInventory bool, namespace string) (apiObject, error) {
	o, err := decodeObject(k, forInventory, namespace, d.Decode)
	if errors.Is(err, errNoName) {
		return nil, d.Fail(err)
	}
	return o, err
}

// decodeObject decodes and trims an object, which is in the given namespace if it names none.
func decodeObject(k kind, forInventory bool, namespace string, decode func(any) error) (apiObject, error) {
	o, err := decodeTyped(k, decode)
	if err != nil {
		return nil, err
	}
	if o.GetName() == "" {
		return nil, errNoName
	}
	switch namespaced := k.describe().namespaced; {
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(namespace)
	}
	trim(o, forInventory)
	return o, nil
}

// decodeTyped decodes an object. The data of secrets is not decoded. ResourceSlices of v1alpha2 have the node
// outside of the spec.
func decodeTyped(k kind, decode func(any) error) (apiObject, error) {
	switch k {
	case kindSecret:
		var s struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Type     corev1.SecretType `json:"type"`
		}
		err := decode(&s)
		return &corev1.Secret{ObjectMeta: s.Metadata, Type: s.Type}, err
	case kindResourceSlice:
		var s struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     struct {
				NodeName *string `json:"nodeName"`
			} `json:"spec"`
			NodeName *string `json:"nodeName"`
		}
		err := decode(&s)
		return &resourcev1.ResourceSlice{
			ObjectMeta: s.Metadata, Spec: resourcev1.ResourceSliceSpec{NodeName: cmp.Or(s.Spec.NodeName, s.NodeName)},
		}, err
	}
	o := k.describe().empty()
	return o, decode(o)
}
