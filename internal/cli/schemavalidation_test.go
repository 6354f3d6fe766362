package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// statusSchema is the exit status of a run whose output does not match its schema.
const statusSchema = 97

// runValidated is main of the program in scripts: each document of its output with -o json and -o yaml is compared with the
// schema of its kind.
func runValidated() int {
	format := documentFormat(os.Args[1:])
	if format == "" {
		return runAt(fixedClock, os.Args, os.Stdin, os.Stdout, os.Stderr)
	}
	var out bytes.Buffer
	status := runAt(fixedClock, os.Args, os.Stdin, io.MultiWriter(os.Stdout, &out), os.Stderr)
	if out.Len() == 0 && status == command.StatusUndecided {
		return status // an error
	}
	_, file, _, _ := runtime.Caller(0)
	published := newSchemas(filepath.Join(filepath.Dir(file), schemasFolder))
	for _, document := range documentsIn(format, out.Bytes()) {
		if err := published.validate(format, document); err != nil {
			fmt.Fprintln(os.Stderr, "the output is wrong:", err)
			return statusSchema
		}
	}
	return status
}

// documentsIn returns the documents of a stream; all text is one document if there is no other.
func documentsIn(format render.Format, text []byte) [][]byte {
	separator := map[render.Format]string{render.JSON: "\n}\n", render.YAML: "\n---\n"}[format]
	all := bytes.SplitAfter(text, []byte(separator))
	for i := range all {
		all[i] = bytes.TrimSuffix(all[i], []byte("---\n"))
	}
	if last := len(all) - 1; last > 0 && len(all[last]) == 0 {
		all = all[:last]
	}
	return all
}

// documentFormat returns the format if the arguments ask for a document.
func documentFormat(args []string) render.Format {
	found := regexp.MustCompile(` (?:-o|--output)(?: |=)?(json|yaml)( |$)`).FindStringSubmatch(" " + strings.Join(args, " "))
	if found == nil {
		return ""
	}
	return render.Format(found[1])
}

// schemas are the compiled schemas of a folder, by kind, each compiled when it is first needed.
type schemas struct {
	folder   string
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

func newSchemas(folder string) *schemas {
	s := &schemas{folder: folder, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	s.compiler.AssertFormat()
	return s
}

// validate compares a document with the schema of its kind.
func (s *schemas) validate(format render.Format, text []byte) error {
	begin := `^\{\n  "apiVersion": "[^"]*",\n  "kind": "[^"]*",\n`
	if format == render.YAML {
		begin = `^apiVersion: .*\nkind: .*\n`
	}
	if !regexp.MustCompile(begin).Match(text) {
		return errors.New("it does not begin with apiVersion and kind")
	}
	asJSON, err := yaml.YAMLToJSONStrict(text) // JSON is YAML
	if err != nil {
		return err
	}
	var header struct{ Kind string }
	if err := json.Unmarshal(asJSON, &header); err != nil {
		return err
	}
	schema := s.compiled[header.Kind]
	if schema == nil {
		if schema, err = s.compiler.Compile(filepath.Join(s.folder, header.Kind+".json")); err != nil {
			return err
		}
		s.compiled[header.Kind] = schema
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return err
	}
	return schema.Validate(document)
}

// run runs a command in this process.
func run(args ...string) (status int, stdout, stderr string) {
	var out, errOut strings.Builder
	status = Main(append([]string{"node-authorizer"}, args...), strings.NewReader(""), &out, io.Writer(&errOut))
	return status, out.String(), errOut.String()
}

// fixedClock is the clock of golden files.
func fixedClock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
