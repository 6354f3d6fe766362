package ledger

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The Secret with the key that the replicas of the service share. It is the only Secret
// that they read.
const (
	KeyNamespace  = metav1.NamespaceSystem
	KeySecretName = "node-authorizer-key"

	keyField = "key"
)

// ServiceKeyBytes is the length of the key.
const ServiceKeyBytes = 32

// ServiceKey reads the key of the service. Other keys are derived from it, each with a
// label of its own. The first replica creates it.
func ServiceKey(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	secrets := client.CoreV1().Secrets(KeyNamespace)
	secret, err := secrets.Get(ctx, KeySecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		key := make([]byte, ServiceKeyBytes)
		rand.Read(key) // never fails
		secret, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: KeySecretName, Namespace: KeyNamespace},
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{keyField: key},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			secret, err = secrets.Get(ctx, KeySecretName, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the service in secret %s/%s: %w", KeyNamespace, KeySecretName, err)
	}
	key := secret.Data[keyField]
	if len(key) != ServiceKeyBytes {
		return nil, fmt.Errorf("the key of the service in secret %s/%s has %d bytes, want %d: "+
			"delete the secret, and a replica creates a new one",
			KeyNamespace, KeySecretName, len(key), ServiceKeyBytes)
	}
	return key, nil
}
