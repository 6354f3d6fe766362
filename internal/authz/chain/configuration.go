package chain

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// Configuration is a valid AuthorizationConfiguration: the file that
// kube-apiserver reads with its flag --authorization-config.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization
type Configuration struct {
	authorizers []configured
	compiler    authorizationcel.Compiler
}

// configured is one authorizer of a configuration.
type configured struct {
	apiserver.AuthorizerConfiguration
	// connection is the client config of a webhook; nil for other types, and for
	// InClusterConfig.
	connection *rest.Config
}

// Names lists the authorizers in order, as Build names them.
func (c *Configuration) Names() []string {
	names := make([]string, len(c.authorizers))
	for i, a := range c.authorizers {
		names[i] = a.displayName()
	}
	return names
}

// Asks reports whether the named authorizer is configured: NameNode
// and NameRBAC say what Build needs.
func (c *Configuration) Asks(name string) bool { return slices.Contains(c.Names(), name) }

// displayName is the type, which is better known than the name, if it can occur only
// once.
func (a *configured) displayName() string {
	if a.Type == apiserver.TypeWebhook {
		return a.Name
	}
	return string(a.Type)
}

// Problems are all mistakes of a configuration, each with its field path.
type Problems []error

func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems:", len(p))
	for _, err := range p {
		b.WriteString("\n  " + strings.ReplaceAll(err.Error(), "\n", "\n    "))
	}
	return b.String()
}

func (p Problems) Unwrap() []error { return p }

// orNil returns the problems as an error, nil if there are none.
func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Load reads and validates a file. The error wraps Problems unless the file
// cannot be read.
func Load(path string) (*Configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the authorization configuration: %w", err)
	}
	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("authorization configuration %s: %w", path, err)
	}
	return c, nil
}

// Parse reads and validates an AuthorizationConfiguration of
// apiserver.config.k8s.io/v1, v1beta1 or v1alpha1, as YAML or JSON, with Kubernetes'
// own loader and validation, so that it refuses the fields and values that
// kube-apiserver refuses. It also reads the kubeconfigs that the configuration names.
// The error is of type Problems.
func Parse(data []byte) (*Configuration, error) {
	decoded, problems := decode(data)
	if decoded == nil {
		return nil, problems
	}
	c := &Configuration{compiler: authorizationcel.NewDefaultCompiler()}
	for _, a := range decoded.Authorizers {
		c.authorizers = append(c.authorizers, configured{AuthorizerConfiguration: a})
	}
	problems = append(problems, c.validate(decoded)...)
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

const (
	configurationKind  = "AuthorizationConfiguration"
	configurationGroup = "apiserver.config.k8s.io"
)

// decode returns nil if nothing can be validated. Unknown and repeated fields are
// problems, but the other fields are still decoded, so that all problems are reported
// at once.
func decode(data []byte) (*apiserver.AuthorizationConfiguration, Problems) {
	if err := checkKind(data); err != nil {
		return nil, Problems{err}
	}
	decoded, err := load.LoadFromData(data)
	if err == nil {
		return decoded, nil
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return nil, Problems{strictjson.Explain(err)}
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	object, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDecoder(), data)
	if err != nil {
		return nil, strict.Errors()
	}
	decoded, _ = object.(*apiserver.AuthorizationConfiguration)
	return decoded, strict.Errors()
}

func checkKind(data []byte) error {
	var document any
	if wrong := yamltext.Locate(data, func(text []byte) error { return yaml.Unmarshal(text, &document) }); wrong != nil {
		return fmt.Errorf("not valid YAML: %w", wrong)
	}
	object, _ := document.(map[string]any)
	kind, _ := object["kind"].(string)
	apiVersion, _ := object["apiVersion"].(string)
	group, version, _ := strings.Cut(apiVersion, "/")
	known := group == configurationGroup && slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, version)
	switch {
	case kind == configurationKind && known:
		return nil
	case kind == "" || apiVersion == "":
		return fmt.Errorf("no kind or no apiVersion: want kind: %s and apiVersion: %s/v1", configurationKind, configurationGroup)
	}
	return fmt.Errorf("kind %q of apiVersion %q: want kind: %s and apiVersion: %s/v1",
		kind, apiVersion, configurationKind, configurationGroup)
}
