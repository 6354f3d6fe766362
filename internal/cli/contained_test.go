package cli

import (
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// startContained starts a writable API server, as startCluster does, with the resources that commands
// about quarantines use, and sets $SERVER to its address:
//
//	contained FILE [VERSION [RESOURCE...]]
//
// It does not serve the given resources. If the script's folder has a file called
//
//	broken    requests fail whose method and path contain its text,
//	forbidden requests are forbidden whose method and path contain its text,
//	follower  each Quarantine that is read gets this status of its generation, as if a server followed it,
//	review    SubjectAccessReviews of nodes and of tokens on a node are answered with this status,
//	review-accounts and the SubjectAccessReviews of tokens, with this one.
func startContained(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: contained FILE [VERSION [RESOURCE...]]")
	}
	version := "v1.37.1"
	if len(args) > 1 {
		version = args[1]
	}
	c := &contained{file: func(name string) string {
		text, err := os.ReadFile(ts.MkAbs(name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}}
	c.server = fakeapiserver.New(fakeapiserver.Options{
		Version: func() string { return version }, Fault: c.fault, ReviewStatus: c.review,
		Resources: containedResources(args[min(2, len(args)):]),
	})
	ts.Defer(c.server.Close)
	var objects map[string]map[string]any
	ts.Check(yaml.Unmarshal([]byte(c.file(args[0])), &objects))
	for path, object := range objects {
		ts.Check(c.server.Put(path, object))
	}
	ts.Setenv("SERVER", c.server.URL())
}

func containedResources(without []string) map[string]map[string]string {
	all := map[string]map[string]string{
		policyv1alpha1.GroupVersion().String(): {"quarantines": "Quarantine"},
		"node-authorizer.io/v1alpha1":          {"nodeattestations": "NodeAttestation"},
	}
	for version, resources := range served {
		all[version] = maps.Clone(resources)
	}
	for _, resources := range all {
		maps.DeleteFunc(resources, func(name, _ string) bool { return slices.Contains(without, name) })
	}
	return all
}

type contained struct {
	server *fakeapiserver.Server
	// file returns the text of a file in the script's folder; empty if there is none.
	file func(name string) string
}

func (c *contained) fault(r *http.Request) fakeapiserver.Fault {
	what := r.Method + " " + r.URL.Path
	for name, fault := range map[string]fakeapiserver.Fault{"broken": fakeapiserver.Unavailable, "forbidden": fakeapiserver.Forbidden} {
		if text := c.file(name); text != "" && strings.Contains(what, text) {
			return fault
		}
	}
	if status := c.file("follower"); status != "" && r.Method == http.MethodGet && path.Base(path.Dir(r.URL.Path)) == "quarantines" {
		c.follow(r.URL.Path, status)
	}
	return fakeapiserver.NoFault
}

// follow sets the status of a Quarantine.
func (c *contained) follow(path, status string) {
	q := &policyv1alpha1.Quarantine{}
	if found, err := c.server.Get(path, q); err != nil || !found {
		return
	}
	if err := yaml.Unmarshal([]byte(status), &q.Status); err != nil {
		panic(err)
	}
	q.Status.ObservedGeneration = q.Generation
	if err := c.server.Put(path, q); err != nil {
		panic(err)
	}
}

func (c *contained) review(spec, status map[string]any) {
	extra, _ := spec["extra"].(map[string]any)
	user, _ := spec["user"].(string)
	answer := ""
	if strings.HasPrefix(user, nodeidentity.UserPrefix) || extra[nodeidentity.ExtraNode] != nil {
		answer = c.file("review")
	}
	if forAccounts := c.file("review-accounts"); forAccounts != "" && extra[nodeidentity.ExtraNode] != nil {
		answer = forAccounts
	}
	if err := yaml.Unmarshal([]byte(answer), &status); err != nil {
		panic(err)
	}
}
