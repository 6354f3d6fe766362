package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"cloud.google.com/go/compute/metadata"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
)

// Collector is the machine's half of the provider.
type Collector struct{ options CollectorOptions }

var _ attest.Collector = (*Collector)(nil)

// CollectorOptions say where the machine gets its token.
type CollectorOptions struct {
	// TokenFile is the path of a file with a token that something else renews; empty: the metadata
	// service of Google Cloud makes tokens for this instance
	// (https://cloud.google.com/compute/docs/instances/verifying-instance-identity).
	TokenFile string
	// ClusterID is the cluster in the audience of tokens from a metadata service.
	ClusterID string
}

// NewCollector returns a collector. The address of the metadata service can be given in the
// environment, as for all programs with Google's libraries: GCE_METADATA_HOST.
func NewCollector(options CollectorOptions) (*Collector, error) {
	if (options.TokenFile == "") == (options.ClusterID == "") {
		return nil, errors.New("want either a file with an identity token, or the id of the cluster for tokens of Google Cloud's " +
			"metadata service")
	}
	return &Collector{options}, nil
}

// NodeName returns the name of the instance, or else the hostname.
func (c *Collector) NodeName(ctx context.Context) (string, error) {
	if c.options.TokenFile != "" {
		return alwaysallow.Hostname()
	}
	name, err := metadata.InstanceNameWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("get the instance's name from the metadata service: %w", err)
	}
	return name, nil
}

// Collect returns a token. A token of the metadata service is bound to what is given.
func (c *Collector) Collect(ctx context.Context, about attest.Binding) ([]byte, error) {
	token, err := c.token(ctx, about)
	if err != nil {
		return nil, err
	}
	return json.Marshal(evidence{IdentityToken: token})
}

func (c *Collector) token(ctx context.Context, about attest.Binding) (string, error) {
	if c.options.TokenFile != "" {
		text, err := os.ReadFile(c.options.TokenFile)
		if err != nil {
			return "", fmt.Errorf("read the identity token: %w", err)
		}
		token := strings.TrimSpace(string(text))
		if token == "" {
			return "", fmt.Errorf("read the identity token: %s is empty", c.options.TokenFile)
		}
		return token, nil
	}
	if about.Challenge == "" {
		return "", errors.New("the service sends no challenge for the audience of the token: is clusterID set in its configuration?")
	}
	query := url.Values{"audience": {Audience(c.options.ClusterID, about)}, "format": {"full"}}
	token, err := metadata.GetWithContext(ctx, "instance/service-accounts/default/identity?"+query.Encode())
	if err != nil {
		return "", fmt.Errorf("get an identity token from the metadata service: %w; the instance needs a service account", err)
	}
	return strings.TrimSpace(token), nil
}
