package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/manifest"
)

// ourConfig reads a document that is node-authorizer's config file.
func (r *reader) ourConfig(d *manifest.Document) error {
	text, line := d.Source()
	if d.Position().Item > 0 { // the source may be the whole list
		text, line = d.JSON(), 0
	}
	return r.ourConfigText(d, text, line)
}

// isOurConfig reports whether a text is node-authorizer's config file, of any version and kind.
func isOurConfig(text []byte) bool {
	var t metav1.TypeMeta
	return yaml.Unmarshal(text, &t) == nil && strings.HasPrefix(t.APIVersion, configv1alpha1.GroupName+"/")
}

// ourConfigText parses node-authorizer's config file like the server, with defaults and
// validation. The text is at a path of the document, or is the whole document. It begins on a line
// of the file; 0 if its lines are not lines of the file.
func (r *reader) ourConfigText(d *manifest.Document, text []byte, line int, path ...string) error {
	config, err := configv1alpha1.Parse(text)
	if err != nil {
		return ourConfigError(d, err, line, path)
	}
	if !config.Webhook.Answers(configv1alpha1.ServeAuthentication) {
		return nil
	}
	a := Authenticator{
		Place: place(d, path...), Kind: NodeAuthorizer,
		ClusterID: config.IAM.ClusterID, Partition: config.IAM.Partition,
		RolePaths: config.IAM.RolePaths, Reserved: config.IAM.Reserved,
	}
	if len(path) == 0 {
		a.Place = place(d, "iam")
	}
	for _, host := range config.IAM.STS.ExtraHosts {
		a.ExtraHosts = append(a.ExtraHosts, host.Host)
	}
	r.cluster.addAuthenticator(a)
	return nil
}

// ourConfigError adds the place in the document's file to each error of a config file.
func ourConfigError(d *manifest.Document, err error, line int, path []string) error {
	var problems configv1alpha1.Problems
	if !errors.As(err, &problems) {
		return d.Fail(err, path...)
	}
	var errs []error
	for _, p := range problems {
		located := &manifest.Error{
			File: d.File(), Position: d.Position(), Object: d.Describe(), Field: keyOf(path), Err: errors.New(p.Message),
		}
		located.Line = cmp.Or(line, d.Line(path...))
		if line > 0 && p.Line > 0 {
			located.Line = line + p.Line - 1
		}
		switch {
		case p.Field == "":
		case located.Field == "":
			located.Field = p.Field
		default:
			located.Err = fmt.Errorf("%s: %s", p.Field, p.Message)
		}
		errs = append(errs, located)
	}
	return errors.Join(errs...)
}
