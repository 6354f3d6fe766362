package attackpaths_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// agent is what a file of examples/agents says.
type agent struct {
	// path is that of the file, title the first line of its comment, and about the lines after it.
	path, title, about string
	// project, release and source say where the facts are from. Notes are limits of what the file
	// says, and dependencies on values.
	project, release, source string
	notes                    []string
	objects                  []runtime.Object
	workloads                []workload
}

// workload is an object with a pod template.
type workload struct {
	kind, namespace, name string
	template              *corev1.PodTemplateSpec
}

func (w workload) String() string { return fmt.Sprintf("%s %s/%s", w.kind, w.namespace, w.name) }

// anchor is the fragment of the heading.
func (a *agent) anchor() string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(a.title))
}

// readAgent reads a file of examples/agents.
func readAgent(t *testing.T, path string) *agent {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{path: path}
	a.readComment(t, string(text))
	for _, object := range decode(t, path, text) {
		if w, ok := workloadOf(object); ok {
			a.workloads = append(a.workloads, w)
		} else {
			a.objects = append(a.objects, object)
		}
	}
	return a
}

// readComment reads the comment at the beginning of the file.
func (a *agent) readComment(t *testing.T, text string) {
	t.Helper()
	var field *string
	fields := map[string]*string{"Project": &a.project, "Release": &a.release, "Source": &a.source}
	for i, line := range strings.Split(text, "\n") {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		comment = strings.TrimSpace(comment)
		key, value, isField := strings.Cut(comment, ": ")
		switch {
		case i == 0:
			a.title = comment
		case comment == "":
			field = nil
		case isField && fields[key] != nil:
			field, *fields[key] = fields[key], value
		case isField && key == "Note":
			a.notes = append(a.notes, value)
			field = &a.notes[len(a.notes)-1]
		case field != nil:
			*field = strings.TrimSpace(*field + " " + comment)
		case a.about == "":
			a.about, field = comment, &a.about
		}
	}
	for name, value := range map[string]string{
		"title": a.title, "description": a.about, "Project": a.project, "Release": a.release, "Source": a.source,
	} {
		if value == "" {
			t.Errorf("%s: the comment at the beginning has no %s", a.path, name)
		}
	}
}

// decode reads objects strictly: a field that Kubernetes does not have is an error.
func decode(t *testing.T, path string, text []byte) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if onlyComments(document) {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", path, err, document)
		}
		objects = append(objects, object)
	}
}

func onlyComments(document []byte) bool {
	return !slices.ContainsFunc(strings.Split(string(document), "\n"), func(line string) bool {
		return strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") && line != "---"
	})
}

// workloadOf returns the pod template of an object; false if it has none.
func workloadOf(object runtime.Object) (workload, bool) {
	w := workload{kind: kindOf(object)}
	switch o := object.(type) {
	case *appsv1.DaemonSet:
		w.namespace, w.name, w.template = o.Namespace, o.Name, &o.Spec.Template
	case *appsv1.Deployment:
		w.namespace, w.name, w.template = o.Namespace, o.Name, &o.Spec.Template
	case *appsv1.StatefulSet:
		w.namespace, w.name, w.template = o.Namespace, o.Name, &o.Spec.Template
	case *batchv1.Job:
		w.namespace, w.name, w.template = o.Namespace, o.Name, &o.Spec.Template
	case *batchv1.CronJob:
		w.namespace, w.name, w.template = o.Namespace, o.Name, &o.Spec.JobTemplate.Spec.Template
	default:
		return workload{}, false
	}
	return w, true
}

func kindOf(object runtime.Object) string {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return schema.GroupVersionKind{}.Kind
	}
	return kinds[0].Kind
}

// readAgents reads all files of a folder, by title.
func readAgents(t *testing.T, folder string) []*agent {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*agent
	for _, path := range paths {
		all = append(all, readAgent(t, path))
	}
	slices.SortFunc(all, func(a, b *agent) int { return strings.Compare(strings.ToLower(a.title), strings.ToLower(b.title)) })
	return all
}
