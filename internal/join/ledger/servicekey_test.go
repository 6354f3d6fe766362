package ledger_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// Replicas that start at the same time agree on one key.
func TestReplicasShareTheServiceKey(t *testing.T) {
	client := fake.NewClientset()
	keys := make([][]byte, 8)
	var replicas sync.WaitGroup
	for i := range keys {
		replicas.Go(func() {
			var err error
			if keys[i], err = ledger.ServiceKey(t.Context(), client); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	for _, key := range keys {
		if len(key) != 32 || !bytes.Equal(key, keys[0]) || bytes.Equal(key, make([]byte, 32)) {
			t.Fatalf("keys are %x and %x", keys[0], key)
		}
	}
	secrets, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) != 1 || secrets.Items[0].Name != "node-authorizer-key" ||
		secrets.Items[0].Type != corev1.SecretTypeOpaque {
		t.Errorf("got %+v, %v", secrets, err)
	}
}

func TestAnInvalidServiceKeyIsAnError(t *testing.T) {
	client := fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "node-authorizer-key"},
		Data:       map[string][]byte{"key": []byte("short")},
	})
	key, err := ledger.ServiceKey(t.Context(), client)
	if err == nil || key != nil || !strings.Contains(err.Error(), "has 5 bytes, want 32: delete the secret") {
		t.Errorf("got %q, %v", key, err)
	}
}
