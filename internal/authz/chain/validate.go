package chain

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	webhookclient "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// typeNames are the supported types.
var typeNames = []string{NameNode, NameRBAC, string(apiserver.TypeWebhook), NameAlwaysAllow, NameAlwaysDeny}

// validate applies Kubernetes' rules, then the rules of kube-apiserver and our own, and
// stores the connections of webhooks. Problems are in the order of the file.
func (c *Configuration) validate(decoded *apiserver.AuthorizationConfiguration) (problems Problems) {
	// The library gets unsupported types as known ones, so that it validates their
	// other fields too.
	known := sets.New(typeNames...)
	for _, a := range decoded.Authorizers {
		known.Insert(string(a.Type))
	}
	known.Delete("")
	all := validation.ValidateAuthorizationConfiguration(c.compiler, nil, decoded, known, sets.New(string(apiserver.TypeWebhook)))
	for _, err := range all {
		c.clarify(err)
	}
	for i := range c.authorizers {
		path := field.NewPath("authorizers").Index(i)
		all = append(all, c.authorizers[i].validate(path, all)...)
	}
	slices.SortStableFunc(all, func(a, b *field.Error) int { return position(a.Field) - position(b.Field) })
	for _, err := range all {
		problems = append(problems, err)
	}
	return problems
}

var authorizerField = regexp.MustCompile(`^authorizers\[(\d+)\]\.(.*)$`)

// position returns the index of the authorizer of a field; -1 if there is none.
func position(path string) int {
	if match := authorizerField.FindStringSubmatch(path); match != nil {
		if i, err := strconv.Atoi(match[1]); err == nil {
			return i
		}
	}
	return -1
}

// clarify completes the library's errors: their paths of webhook fields lack the
// parent, and missing values have no remedy.
func (c *Configuration) clarify(err *field.Error) {
	match := authorizerField.FindStringSubmatch(err.Field)
	if match == nil {
		return
	}
	name := match[2]
	if !slices.Contains([]string{"type", "name", "webhook"}, name) {
		err.Field = fmt.Sprintf("authorizers[%s].webhook.%s", match[1], name)
	}
	a := c.authorizers[position(err.Field)]
	if name == "connectionInfo.type" && err.Type == field.ErrorTypeNotSupported {
		err.BadValue = a.Webhook.ConnectionInfo.Type
	}
	if err.Type == field.ErrorTypeRequired && err.Detail == "" {
		err.Detail = a.missing(name)
	}
}

// missing returns the remedy for a missing value.
func (a *configured) missing(name string) string {
	switch name {
	case "type":
		return "set it to one of " + strings.Join(typeNames, ", ")
	case "name":
		if a.Type == apiserver.TypeWebhook {
			return "give it a unique name, which appears in reasons"
		}
		return "set it to " + a.wantName()
	case "timeout":
		return "set the timeout of a call: more than 0s, at most 30s"
	case "authorizedTTL", "unauthorizedTTL":
		return "set how long answers are cached"
	case "subjectAccessReviewVersion":
		return "set it to v1 or v1beta1, whichever the webhook supports"
	case "failurePolicy":
		return "set it to NoOpinion or Deny, the decision when the webhook fails"
	case "connectionInfo.type":
		return "set it to KubeConfigFile or InClusterConfig"
	case "connectionInfo.kubeConfigFile":
		return "name the kubeconfig with the webhook's address"
	}
	return "write a CEL expression, or leave the condition out"
}

// validate checks what the library leaves to kube-apiserver and to the client. found
// are the errors that are already known.
func (a *configured) validate(path *field.Path, found field.ErrorList) (errs field.ErrorList) {
	kind := string(a.Type)
	switch {
	case a.Type == apiserver.TypeWebhook:
		if a.Webhook != nil {
			errs = a.validateConnection(path.Child("webhook"), found)
		}
		return errs
	case kind == "":
		return nil
	case kind == "ABAC":
		errs = append(errs, field.Invalid(path.Child("type"), kind,
			"attribute files are not supported: grant the same with RBAC, or remove this authorizer"))
	case !slices.Contains(typeNames, kind):
		errs = append(errs, field.NotSupported(path.Child("type"), kind, typeNames))
	}
	if want := a.wantName(); a.Name != "" && a.Name != want && slices.Contains(typeNames, kind) {
		errs = append(errs, field.Invalid(path.Child("name"), a.Name, fmt.Sprintf("the authorizer of type %s is named %s", kind, want)))
	}
	return errs
}

// wantName returns the only name that kube-apiserver accepts for an authorizer that
// is not a webhook.
func (a *configured) wantName() string { return strings.ToLower(string(a.Type)) }

func (a *configured) validateConnection(path *field.Path, found field.ErrorList) field.ErrorList {
	at := path.Child("connectionInfo", "kubeConfigFile")
	info := a.Webhook.ConnectionInfo
	switch info.Type {
	case apiserver.AuthorizationWebhookConnectionInfoTypeInCluster:
		if a.Webhook.SubjectAccessReviewVersion == "v1beta1" {
			return field.ErrorList{field.Invalid(path.Child("subjectAccessReviewVersion"), "v1beta1",
				"kube-apiserver, which InClusterConfig connects to, answers v1 only")}
		}
		return nil
	case apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile:
		if slices.ContainsFunc(found, func(e *field.Error) bool { return e.Field == at.String() }) {
			return nil
		}
		connection, err := readKubeconfig(*info.KubeConfigFile)
		if err != nil {
			return field.ErrorList{field.Invalid(at, *info.KubeConfigFile, err.Error())}
		}
		a.connection = connection
	}
	return nil
}

// readKubeconfig also reads the certificates that a kubeconfig names.
func readKubeconfig(path string) (*rest.Config, error) {
	connection, err := webhookclient.LoadKubeconfig(path, nil)
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("the kubeconfig names no cluster in its current context: put the webhook's address there")
	}
	if err != nil {
		if text, failed := os.ReadFile(path); failed == nil {
			if _, failed = clientcmd.Load(text); failed != nil { // whose error may quote the file
				return nil, errors.New("the file is not a kubeconfig")
			}
		}
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if _, err := rest.TLSConfigFor(connection); err != nil {
		return nil, fmt.Errorf("using the kubeconfig: %w", err)
	}
	return connection, nil
}
