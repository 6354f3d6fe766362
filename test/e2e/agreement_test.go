package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/internal/cli"
)

// TestCanIAgreesWithTheAPIServer puts each question to our can-i on the live
// cluster and to the API server's own access review, which asks the in-tree
// Node authorizer. The authorizers have allowed the requests that NodeRestriction refuses.
func TestCanIAgreesWithTheAPIServer(t *testing.T) {
	c := client(t, shop.Plane)
	kubeconfig := shop.AdminKubeconfig()
	qs := questions(t, c)

	var mu sync.Mutex
	var allowed, refused int
	var group sync.WaitGroup
	queue := make(chan question)
	for range 4 {
		group.Go(func() {
			for q := range queue {
				ours, out, err := canI(q, kubeconfig)
				if err != nil {
					t.Errorf("%s: %v", q, err)
					continue
				}
				theirs := apiServerAgrees(t, c, q, ours)
				if ours != theirs {
					t.Errorf("%s: can-i says %t (%s), the API server %t", q, ours, strings.TrimSpace(out), theirs)
				}
				mu.Lock()
				if theirs {
					allowed++
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	for _, q := range qs {
		queue <- q
	}
	close(queue)
	group.Wait()

	t.Logf("%d questions: %d allowed, %d refused by both", len(qs), allowed, refused)
	if len(qs) < 200 || allowed < 50 || refused < 50 {
		t.Errorf("the questions do not exercise both answers: %d of %d allowed", allowed, len(qs))
	}
}

// canI asks on the command line whether the authorizers allow it.
func canI(q question, kubeconfig string) (allowed bool, out string, err error) {
	var stdout, stderr bytes.Buffer
	status := cli.Main(append(q.args(kubeconfig), "-o", "json"), strings.NewReader(""), &stdout, &stderr)
	if status != 0 && status != 1 {
		return false, "", fmt.Errorf("exit status %d: %s", status, stderr.String())
	}
	var said struct{ Answer, DecidedBy string }
	if err := json.Unmarshal(stdout.Bytes(), &said); err != nil {
		return false, "", err
	}
	if (said.Answer == "yes") != (status == 0) {
		return false, "", fmt.Errorf("exit status %d beside the answer %s", status, said.Answer)
	}
	return status == 0 || said.DecidedBy == "NodeRestriction", stdout.String(), nil
}

// apiServerAgrees asks the API server until it answers what we expect, because its
// Node authorizer follows the cluster with a delay. The last answer counts.
func apiServerAgrees(t *testing.T, c kubernetes.Interface, q question, expected bool) (allowed bool) {
	const interval, timeout = 200 * time.Millisecond, time.Minute
	err := wait.PollUntilContextTimeout(context.Background(), interval, timeout, true, func(ctx context.Context) (bool, error) {
		review, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, q.review(), metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		allowed = review.Status.Allowed
		return allowed == expected, nil
	})
	if err != nil && !wait.Interrupted(err) {
		t.Errorf("%s: %v", q, err)
	}
	return allowed
}
