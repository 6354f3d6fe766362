package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// ObjectFlags name the files with the objects of a write.
type ObjectFlags struct {
	Object, oldObject string
}

func AddObjects(cmd *cobra.Command) *ObjectFlags {
	f := &ObjectFlags{}
	cmd.Flags().StringVarP(&f.Object, "filename", "f", "",
		"file with the object that is written, in YAML or JSON, - for stdin: also evaluate NodeRestriction")
	cmd.Flags().StringVar(&f.oldObject, "old-object", "",
		"file with the object before the write, with which NodeRestriction compares")
	Must(cmd.MarkFlagFilename("filename"))
	Must(cmd.MarkFlagFilename("old-object"))
	return f
}

// WrittenObjects are the texts of the objects of a write; nil if not given.
type WrittenObjects struct {
	Object, OldObject *ObjectText
}

// ObjectText is the text of an object that a flag names, and where it is from.
type ObjectText struct {
	File string
	Text []byte
}

// Read reads the files. It is called before the state is read, so that errors are reported
// immediately.
func (f *ObjectFlags) Read(a *App, state *StateFlags) (WrittenObjects, error) {
	fromStdin := 0
	for _, path := range append([]string{f.Object, f.oldObject}, state.From...) {
		if path == StdinName {
			fromStdin++
		}
	}
	if (f.Object == StdinName || f.oldObject == StdinName) && fromStdin > 1 {
		return WrittenObjects{}, Usagef("of -f, --old-object and --from, only one can be stdin: put the others into files")
	}
	var w WrittenObjects
	var err error
	if w.Object, err = a.readObject(f.Object); err != nil {
		return w, err
	}
	w.OldObject, err = a.readObject(f.oldObject)
	return w, err
}

func (a *App) readObject(path string) (*ObjectText, error) {
	if path == "" {
		return nil, nil
	}
	in, name, err := a.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, review.MaxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the object: %w", err)
	case len(text) > review.MaxDocument:
		return nil, fmt.Errorf("%s: larger than %d bytes", name, review.MaxDocument)
	}
	object, err := oneDocument(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &ObjectText{name, object}, nil
}

// oneDocument returns the only document of a file as JSON.
func oneDocument(text []byte) ([]byte, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var found []byte
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var converted []byte
		wrong := yamltext.Locate(document, func(text []byte) (err error) {
			converted, err = yaml.YAMLToJSONStrict(text)
			return err
		})
		switch {
		case wrong != nil:
			return nil, fmt.Errorf("not valid YAML: %w", wrong)
		case string(converted) == "null":
		case found != nil:
			return nil, errors.New("holds several documents: want one object")
		default:
			found = converted
		}
	}
	if found == nil {
		return nil, errors.New("holds no object")
	}
	return found, nil
}

// Decode decodes the object, which must be of the kind of the question.
func (t *ObjectText) Decode(q Question) (runtime.Object, error) {
	var header metav1.TypeMeta
	if err := yaml.Unmarshal(t.Text, &header); err != nil {
		return nil, fmt.Errorf("%s: want an object with kind and apiVersion", t.File)
	}
	kind, want := header.GroupVersionKind(), q.WrittenKind()
	if kind.GroupKind() != want {
		return nil, fmt.Errorf(
			"%s: kind %q of apiVersion %q: the object written to %s must be a %s", t.File, header.Kind, header.APIVersion, q.target(),
			strings.TrimSuffix(want.Kind+" of "+want.Group, " of "),
		)
	}
	object, err := review.DecodeObject(t.Text, kind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.File, err)
	}
	of, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.File, err)
	}
	if name := of.GetName(); name != "" && q.Name != "" && name != q.Name {
		return nil, fmt.Errorf("%s: the object's name is %s, and the question's name is %s", t.File, name, q.Name)
	}
	if namespace := of.GetNamespace(); namespace != "" && namespace != q.Namespace {
		return nil, fmt.Errorf(
			"%s: the object's namespace is %s, and the question's namespace is %q: use -n %s", t.File, namespace, q.Namespace, namespace,
		)
	}
	return object, nil
}

// WrittenKind returns the kind of the objects that are written to a resource or subresource.
func (q Question) WrittenKind() schema.GroupKind {
	switch [2]string{q.Resource, q.Subresource} {
	case [2]string{"pods", "eviction"}:
		return schema.GroupKind{Group: "policy", Kind: "Eviction"}
	case [2]string{"serviceaccounts", "token"}:
		return schema.GroupKind{Group: authenticationv1.GroupName, Kind: "TokenRequest"}
	}
	return schema.GroupKind{Group: q.Group, Kind: q.kind}
}

// target returns the resource with its subresource: "pods/status".
func (q Question) target() string {
	if q.Subresource == "" {
		return q.Resource
	}
	return q.Resource + "/" + q.Subresource
}
