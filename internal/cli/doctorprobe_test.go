package cli

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakecluster"
)

// startProbed starts an API server that answers probes, and points $KUBECONFIG to it. It has the objects
// of DIR (see apiserver), and the protections of the JSON in FILE:
//
//	probed VERSION DIR FILE
//
// When the script ends, nothing may have been stored.
func startProbed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: probed VERSION DIR FILE")
	}
	fake := &fakecluster.Cluster{}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[2])), fake))
	files := &fileServer{version: args[0], dir: ts.MkAbs(args[1])}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ofProbe(r) {
			fake.ServeHTTP(w, r)
			return
		}
		files.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	ts.Defer(func() {
		server.Close()
		if stored := fake.Stored(); len(stored) > 0 {
			ts.Fatalf("the probes stored %q", stored)
		}
	})
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: server.URL, CertificateAuthorityData: authority(server)}
	config.AuthInfos["u"] = &api.AuthInfo{Token: fakecluster.Token}
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	text, err := clientcmd.Write(*config)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.Getenv("KUBECONFIG"), text, 0o600))
}

// ofProbe reports whether only probes send a request.
func ofProbe(r *http.Request) bool {
	return r.Method != http.MethodGet || r.Header.Get("Authorization") == "" || strings.Contains(r.URL.Path, "/node-authorizer-probe-") ||
		slices.Contains(r.URL.Query()["fieldSelector"], "status.phase=Running")
}
