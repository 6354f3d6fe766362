package mapped

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/aws-iam-authenticator/pkg/config"
	"sigs.k8s.io/aws-iam-authenticator/pkg/mapper/configmap"
	"sigs.k8s.io/aws-iam-authenticator/pkg/metrics"
	"sigs.k8s.io/aws-iam-authenticator/pkg/token"
)

// reference is the mapper of aws-iam-authenticator, which watches a ConfigMap.
type reference struct {
	mapper *configmap.ConfigMapMapper
	events chan map[string]string
	edits  int
}

// startReference starts the mapper with an API server that has only the watch of the
// ConfigMap.
func startReference(t *testing.T) *reference {
	t.Helper()
	logrus.SetOutput(io.Discard)
	metrics.InitMetrics(prometheus.NewRegistry())
	r := &reference{events: make(chan map[string]string)}
	server := httptest.NewServer(http.HandlerFunc(r.watch))
	mapper, err := configmap.NewConfigMapMapper(config.Config{Master: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	if err := mapper.Start(stop); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(stop)
		server.CloseClientConnections()
		server.Close()
	})
	r.mapper = mapper
	return r
}

func (r *reference) watch(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for {
		select {
		case <-request.Context().Done():
			return
		case data := <-r.events:
			event := map[string]any{"type": "MODIFIED", "object": corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"},
				Data:       data,
			}}
			if json.NewEncoder(w).Encode(event) != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

// read passes lists of roles, users and accounts to the mapper, and waits until it has
// read them. Each edit has a new account, which shows when it is read.
func (r *reference) read(t *testing.T, roles, users string, accounts ...string) {
	t.Helper()
	r.edits++
	account := fmt.Sprintf("%012d", r.edits)
	r.events <- map[string]string{
		"mapRoles": roles, "mapUsers": users, "mapAccounts": "- " + strings.Join(append(accounts, account), "\n- "),
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return r.mapper.IsAccountAllowed(account), nil
	})
	if err != nil {
		t.Fatalf("the mapper does not read the ConfigMap: %v", err)
	}
}

// find returns the username and groups of a caller.
func (r *reference) find(arn string) (username string, groups []string, ok bool) {
	mapping, err := r.mapper.Map(&token.Identity{CanonicalARN: arn})
	if err != nil {
		return "", nil, false
	}
	return mapping.Username, mapping.Groups, true
}
