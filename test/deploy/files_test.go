package deploy

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	deployFolder = "../../deploy"
	chartFolder  = "../../charts/node-authorizer"
	docsFolder   = "../../docs"
)

// forms are the folders of deploy with a whole installation.
var forms = []string{"static-pod", "service"}

// filledIn replaces the placeholders of the manifests.
var filledIn = strings.NewReplacer(
	"CA_BUNDLE", base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----")),
	"CLUSTER_NAME", "shop.example.com",
	"CLUSTER_ID", "blue",
	"CONTROL_PLANE_CIDR", "10.0.0.0/24",
	"API_SERVER", "api.blue.example.com:6443",
	"SERVICE_IP", "10.96.0.17",
	"IMAGE", "registry.example.com/node-authorizer:v1",
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// kindsServed returns the kinds of an API server that the manifests need.
func kindsServed() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, apiextensionsv1.AddToScheme(s)
}

// decode decodes YAML documents like the API server: unknown and repeated fields are
// errors.
func decode(documents string) ([]runtime.Object, error) {
	served, err := kindsServed()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(served, serializer.EnableStrict)
	var objects []runtime.Object
	for reader := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(documents))); ; {
		buffer := make([]byte, len(documents)+1)
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		document := bytes.TrimSpace(buffer[:n])
		if !hasContent(document) {
			continue
		}
		object, err := runtime.Decode(codecs.UniversalDeserializer(), document)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// hasContent reports whether a document has more than comments.
func hasContent(document []byte) bool {
	for line := range bytes.Lines(document) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return true
		}
	}
	return false
}

func mustDecode(t *testing.T, documents string) []runtime.Object {
	t.Helper()
	objects, err := decode(documents)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// only returns the one object of its type.
func only[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	var found []T
	for _, o := range objects {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want 1", len(found), *new(T))
	}
	return found[0]
}

// built returns the objects that kustomize makes of a folder of deploy.
func built(t *testing.T, folder string) []runtime.Object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(deployFolder, folder))
	if err != nil {
		t.Fatal(err)
	}
	documents, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return mustDecode(t, filledIn.Replace(string(documents)))
}
