package doctor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// authenticatorConfig has the fields of aws-iam-authenticator's configuration that checks need.
type authenticatorConfig struct {
	APIVersion string `json:"apiVersion"`
	ClusterID  string `json:"clusterID"`
	Server     struct {
		Partition string `json:"partition"`
	} `json:"server"`
}

// configText reads the configuration of aws-iam-authenticator from a text at a place, which
// begins on a line of its file.
func (r *reader) configText(at finding.Place, name string, text []byte, line int) error {
	if _, wrong := yamltext.Parse(text); wrong != nil {
		return fmt.Errorf("not valid YAML: %w", wrong)
	}
	var c authenticatorConfig
	if err := yaml.Unmarshal(text, &c); err != nil {
		return strictjson.Explain(err)
	}
	if c.ClusterID != "" {
		r.cluster.addAuthenticator(Authenticator{Place: at, Kind: IAMAuthenticator, ClusterID: c.ClusterID, Partition: c.Server.Partition})
	}
	mappings := slices.ContainsFunc(mappingKeys(), func(key string) bool { return bytes.Contains(text, []byte(key)) })
	if mappings && c.APIVersion == "" {
		r.cluster.MappingFiles = append(r.cluster.MappingFiles, MappingFile{Place: at, Name: name, Text: bytes.Clone(text), Line: line})
	}
	return nil
}

func mappingKeys() []string { return []string{iam.MapRoles, iam.MapUsers, iam.MapAccounts} }

// plainFile reads a document that is not an API object: the machine config of Talos, the config
// of k3s or RKE2, the configuration of aws-iam-authenticator, a file with only mappings, aws-auth
// without its header, or an answer of EKS about access entries.
func (r *reader) plainFile(d *manifest.Document) error {
	for _, take := range []func(*manifest.Document) (bool, error){r.accessEntryAnswer, r.cloudFormation, r.dataAlone} {
		if taken, err := take(d); taken || err != nil {
			return err
		}
	}
	text, line := d.Source()
	var c map[string]json.RawMessage
	if yaml.Unmarshal(text, &c) == nil {
		switch {
		case c["machine"] != nil && c["cluster"] != nil:
			return r.talosConfig(d, text)
		case isRancherConfig(c):
			at := finding.Place{File: d.File(), Line: d.Line(rancherFlag), Key: rancherFlag}
			if err := r.rancherConfig(at, d.File(), c); err != nil {
				return d.Fail(err)
			}
			return nil
		}
	}
	if err := r.configText(finding.Place{File: d.File(), Line: line}, d.File(), text, line); err != nil {
		return d.Fail(err)
	}
	return nil
}

// configMapText is a ConfigMap, or only its data, as people write it.
type configMapText struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Data map[string]any `json:"data"`
}

func (m *configMapText) texts(d *manifest.Document) (map[string]string, error) {
	texts := make(map[string]string, len(m.Data))
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		text, isText := m.Data[key].(string)
		if !isText && m.Data[key] != nil {
			return nil, d.Fail(
				fmt.Errorf("want text, and no API server takes anything else: write \"%s: |\" and indent what follows", key), "data", key,
			)
		}
		texts[key] = text
	}
	return texts, nil
}

// dataAlone reads the data section of aws-auth, copied without apiVersion and kind. It returns
// false for other documents.
func (r *reader) dataAlone(d *manifest.Document) (bool, error) {
	var m configMapText
	if err := json.Unmarshal(d.JSON(), &m); err != nil {
		return false, nil // the next reader reports the error
	}
	mappings := slices.ContainsFunc(mappingKeys(), func(key string) bool { _, ok := m.Data[key]; return ok })
	if !mappings || m.Metadata.Name != "" && m.Metadata.Name != awsAuthName {
		return false, nil
	}
	data, err := m.texts(d)
	if err != nil {
		return true, err
	}
	return true, r.awsAuth(d, cmp.Or(m.Metadata.Namespace, kubeSystem), data)
}

// kubeconfig reads which credential plugins a kubeconfig runs. It does not read tokens and keys.
func (r *reader) kubeconfig(d *manifest.Document) error {
	var c struct {
		Users []struct {
			Name string `json:"name"`
			User struct {
				Exec *clientcmdv1.ExecConfig `json:"exec"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := d.Decode(&c); err != nil {
		return err
	}
	for i, u := range c.Users {
		if u.User.Exec == nil {
			continue
		}
		at := place(d, "users", fmt.Sprint(i), "user", "exec")
		at.Object = "kubeconfig"
		if credential, ok := credentialOf(u.User.Exec, u.Name, at); ok {
			r.cluster.Credentials = append(r.cluster.Credentials, credential)
		}
	}
	return nil
}

// credentialOf returns which token a credential plugin makes; ok is false for programs that do not make AWS
// tokens.
func credentialOf(e *clientcmdv1.ExecConfig, user string, at finding.Place) (c Credential, ok bool) {
	flags := arguments(e.Args).flags()
	c = Credential{Place: at, Name: user, Command: path.Base(e.Command), Region: flags.last("region")}
	switch c.Command {
	case IAMAuthenticator, NodeAuthorizer, "heptio-authenticator-aws":
		c.ClusterID = flags.last("cluster-id", "i")
	case "aws":
		c.ClusterID = flags.last("cluster-name", "cluster-id")
	default:
		return Credential{}, false
	}
	for _, variable := range e.Env {
		if c.Region == "" && (variable.Name == "AWS_REGION" || variable.Name == "AWS_DEFAULT_REGION") {
			c.Region = variable.Value
		}
	}
	return c, true
}

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
		message := p.Message
		if p.Field != "" {
			message = p.Field + ": " + message
		}
		err := d.Fail(errors.New(message), path...)
		if located, ok := errors.AsType[*manifest.Error](err); ok && line > 0 {
			located.Line = line + max(p.Line, 1) - 1
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *reader) configMap(d *manifest.Document) error {
	var m configMapText
	if err := d.Decode(&m); err != nil {
		return err
	}
	data, err := m.texts(d)
	if err != nil {
		return err
	}
	if m.Metadata.Name == awsAuthName {
		return r.awsAuth(d, cmp.Or(m.Metadata.Namespace, kubeSystem), data)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, at := data[key], place(d, "data", key)
		line, _ := d.TextLine("data", key)
		var err error
		switch {
		case strings.Contains(text, groupOpenShift) && strings.Contains(text, openShiftKind):
			err = r.openShift(d, m.Metadata.Name, []byte(text), "data", key)
		case !strings.Contains(text, "clusterID"):
		case isOurConfig([]byte(text)):
			err = r.ourConfigText(d, []byte(text), line, "data", key)
		default:
			if err = r.configText(at, at.String(), []byte(text), line); err != nil {
				err = d.Fail(err, "data", key)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const awsAuthName = "aws-auth"

func (r *reader) awsAuth(d *manifest.Document, namespace string, data map[string]string) error {
	at := place(d)
	at.Object = "ConfigMap " + namespace + "/" + awsAuthName
	switch {
	case namespace != kubeSystem:
		r.cluster.Unread = append(r.cluster.Unread, at)
		return nil
	case r.cluster.AWSAuth != nil:
		r.cluster.Unread = append(r.cluster.Unread, r.cluster.AWSAuth.Place)
	}
	m := &ConfigMap{Place: at, Data: data, Lines: map[string]int{}, KeyLines: map[string]int{}}
	for key := range data {
		m.KeyLines[key] = d.Line("data", key)
		if line, ok := d.TextLine("data", key); ok {
			m.Lines[key] = line
		}
	}
	r.cluster.AWSAuth = m
	return nil
}
