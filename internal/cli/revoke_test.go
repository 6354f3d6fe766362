package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// startCluster starts a writable API server with the objects of a file (YAML, by path), and
// sets $SERVER to its address:
//
//	cluster FILE
//
// If the script's folder has a file called broken, requests fail whose method and path contain
// its text.
func startCluster(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cluster FILE")
	}
	broken := ts.MkAbs("broken")
	server := fakeapiserver.New(fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		if text, err := os.ReadFile(broken); err == nil && strings.Contains(r.Method+" "+r.URL.Path, strings.TrimSpace(string(text))) {
			return fakeapiserver.Unavailable
		}
		return fakeapiserver.NoFault
	}})
	ts.Defer(server.Close)
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var objects map[string]map[string]any
	ts.Check(yaml.Unmarshal(text, &objects))
	for path, object := range objects {
		ts.Check(server.Put(path, object))
	}
	ts.Setenv("SERVER", server.URL())
}

// showObject writes an object of $SERVER to a file, without fields that differ from run to
// run:
//
//	object PATH FILE
func showObject(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: object PATH FILE")
	}
	resp, err := http.Get(ts.Getenv("SERVER") + args[0])
	ts.Check(err)
	defer resp.Body.Close()
	var object map[string]any
	ts.Check(json.NewDecoder(resp.Body).Decode(&object))
	strip(object, "resourceVersion", "creationTimestamp", "lastTransitionTime")
	text, err := yaml.Marshal(object)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

func strip(value any, names ...string) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if slices.Contains(names, name) {
				delete(value, name)
			}
			strip(inner, names...)
		}
	case []any:
		for _, inner := range value {
			strip(inner, names...)
		}
	}
}
