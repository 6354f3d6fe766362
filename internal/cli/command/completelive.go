package command

import (
	"context"
	"net/http"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/resources"
)

const (
	// completionBytes bounds each answer of an API server.
	completionBytes = 8 << 20
	// completionPages bounds how many pages are read to find names that begin with a text.
	completionPages = 10
)

// forCompletion returns the client configuration for requests that a shell waits for. A
// credential plugin may not ask the user anything.
func (c *Connection) forCompletion() (*rest.Config, error) {
	if several, err := c.contexts(false); err == nil && len(several) > 0 {
		c.overrides.CurrentContext = several[0]
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.Timeout = completionTime
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedAnswers{next} })
	if config.ExecProvider != nil {
		config.ExecProvider.InteractiveMode = api.NeverExecInteractiveMode
		config.ExecProvider.StdinUnavailable = true
	}
	return config, nil
}

// boundedAnswers fails to read answers that are too large.
type boundedAnswers struct{ next http.RoundTripper }

func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, completionBytes)
	}
	return answer, err
}

// objectNames lists the names of a cluster's objects that begin with a text. It asks for the metadata of
// objects only, so that no data of secrets is sent.
func (c *Connection) objectNames(ctx context.Context, of resources.Resource, namespace, begin string) []string {
	config, err := c.forCompletion()
	if err != nil {
		return nil
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	for _, version := range of.Versions {
		resource := client.Resource(schema.GroupVersionResource{Group: of.Group, Version: version, Resource: of.Name})
		names, err := pagesOfNames(ctx, resource.Namespace(namespace), begin)
		if !apierrors.IsNotFound(err) {
			return names
		}
	}
	return nil
}

// pagesOfNames returns the names of the pages that could be read.
func pagesOfNames(ctx context.Context, of metadata.ResourceInterface, begin string) ([]string, error) {
	var names []string
	options := metav1.ListOptions{Limit: completionNames}
	for range completionPages {
		list, err := of.List(ctx, options)
		if err != nil {
			return names, err
		}
		for i := range list.Items {
			if name := list.Items[i].Name; strings.HasPrefix(name, begin) && len(names) < completionNames {
				names = append(names, name)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" || len(names) == completionNames {
			break
		}
	}
	return names, nil
}

// subjects lists the users or groups of the bindings of a cluster.
func (c *Connection) subjects(ctx context.Context, kind string) []string {
	config, err := c.forCompletion()
	if err != nil {
		return nil
	}
	client, err := rbacclient.NewForConfig(config)
	if err != nil {
		return nil
	}
	var names []string
	add := func(subjects []rbacv1.Subject) {
		for _, s := range subjects {
			if s.Kind == kind {
				names = append(names, s.Name)
			}
		}
	}
	options := metav1.ListOptions{Limit: completionNames}
	if all, err := client.ClusterRoleBindings().List(ctx, options); err == nil {
		for i := range all.Items {
			add(all.Items[i].Subjects)
		}
	}
	if all, err := client.RoleBindings("").List(ctx, options); err == nil {
		for i := range all.Items {
			add(all.Items[i].Subjects)
		}
	}
	return names
}
