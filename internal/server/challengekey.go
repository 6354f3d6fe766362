package server

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The Secret with which replicas recognize each other's challenges.
const (
	challengeNamespace = metav1.NamespaceSystem
	challengeSecret    = "node-authorizer-challenge"
	challengeKeyField  = "key"
	challengeKeyBytes  = 32
)

// challengeKey reads the key of challenges, which all replicas share. The first
// of them makes it.
func challengeKey(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	secrets := client.CoreV1().Secrets(challengeNamespace)
	secret, err := secrets.Get(ctx, challengeSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		key := make([]byte, challengeKeyBytes)
		rand.Read(key) // never fails
		secret, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: challengeSecret, Namespace: challengeNamespace},
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{challengeKeyField: key},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			secret, err = secrets.Get(ctx, challengeSecret, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of challenges in secret %s/%s: %w", challengeNamespace, challengeSecret, err)
	}
	key := secret.Data[challengeKeyField]
	if len(key) != challengeKeyBytes {
		return nil, fmt.Errorf("the key of challenges in secret %s/%s has %d bytes, want %d: delete the secret, and a new one is made",
			challengeNamespace, challengeSecret, len(key), challengeKeyBytes)
	}
	return key, nil
}
