package contain

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
)

// quarantineClient reads and writes Quarantines, and what commands about them need to know of the
// cluster.
type quarantineClient struct {
	*gentype.ClientWithList[*policyv1alpha1.Quarantine, *policyv1alpha1.QuarantineList]
	cluster kubernetes.Interface
	host    string
}

func newQuarantineClient(to *command.Connection) (*quarantineClient, error) {
	config, err := to.Config()
	if err != nil {
		return nil, err
	}
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	client, codec, err := generate.Client(config)
	if err != nil {
		return nil, err
	}
	return &quarantineClient{gentype.NewClientWithList(
		policyv1alpha1.QuarantineResource, client, codec, "",
		func() *policyv1alpha1.Quarantine { return &policyv1alpha1.Quarantine{} },
		func() *policyv1alpha1.QuarantineList { return &policyv1alpha1.QuarantineList{} },
	), cluster, config.Host}, nil
}

// all lists the Quarantines, sorted by name as the API server does.
func (c *quarantineClient) all(ctx context.Context) ([]policyv1alpha1.Quarantine, error) {
	list, err := c.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf(
			"the cluster does not know quarantines: install the CustomResourceDefinition, or check which cluster you asked: %w", err,
		)
	}
	if err != nil {
		return nil, command.ExplainRequest(ctx, c.host, "list quarantines", err)
	}
	return list.Items, nil
}
