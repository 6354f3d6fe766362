package server

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// fileCase is a change of good files, and the messages about it. Empty texts: no message.
type fileCase struct {
	change         func(*checkedFiles)
	wrong, warning string
}

// fileCases are named by the rule that they show.
func fileCases() map[string]fileCase {
	all := map[string]fileCase{"good files": {}}
	for _, cases := range []map[string]fileCase{pairCases(), authorityCases(), kubeconfigCases(), otherFileCases()} {
		for rule, c := range cases {
			all[rule] = c
		}
	}
	return all
}

func pairCases() map[string]fileCase {
	certificate := func(change func(*x509.Certificate)) func(*checkedFiles) {
		return func(f *checkedFiles) { f.pair(f.config.Webhook.CertificateFile, f.config.Webhook.KeyFile, change) }
	}
	key := func(f *checkedFiles) string { return f.config.Webhook.KeyFile }
	return map[string]fileCase{
		"no certificate": {
			func(f *checkedFiles) { f.put(f.config.Webhook.CertificateFile, []byte("nothing")) },
			"webhook.certificateFile: ", "",
		},
		"a missing key": {func(f *checkedFiles) { os.Remove(key(f)) }, "webhook.keyFile: open ", ""},
		"a folder as key": {
			func(f *checkedFiles) { os.Remove(key(f)); os.Mkdir(key(f), 0o700) },
			"webhook.keyFile: read ", "",
		},
		"the key of another certificate": {
			func(f *checkedFiles) {
				other := filepath.Join(filepath.Dir(key(f)), "other.crt")
				f.pair(other, key(f), nil)
			},
			"private key does not match public key; give a certificate and its key in PEM form", "",
		},
		"a certificate in the place of the key": {
			func(f *checkedFiles) { f.put(key(f), f.longAuthority(f.servers)) }, "webhook.certificateFile: ", "",
		},
		"a key in the place of the certificate": {
			func(f *checkedFiles) {
				text, _ := os.ReadFile(key(f))
				f.put(f.config.Webhook.CertificateFile, text)
			}, "webhook.certificateFile: ", "",
		},
		"a certificate that expired": {
			certificate(func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Unix(1e9, 0), time.Unix(1.1e9, 0) }),
			"the certificate expired at 2004-11-09T11:33:20Z: renew it", "",
		},
		"a certificate of the future": {
			certificate(func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Unix(4e9, 0), time.Unix(4.1e9, 0) }),
			"the certificate is not valid before 2096-10-02T07:06:40Z", "",
		},
		"a certificate that expires soon": {
			certificate(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(6 * 24 * time.Hour) }), "", "the certificate expires at ",
		},
		"a certificate without names": {
			certificate(func(c *x509.Certificate) { c.IPAddresses = nil }), "no DNS name and no IP address", "",
		},
		"a certificate of a client": {
			certificate(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
			"issue one with the usage serverAuth", "",
		},
		"a certificate for any usage": {
			certificate(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }), "", "",
		},
		"a key that everybody may read": {
			func(f *checkedFiles) { os.Chmod(key(f), 0o644) }, "", "has the mode 0644, so that every user of the host can read",
		},
		"a key that a group may read": {func(f *checkedFiles) { os.Chmod(key(f), 0o640) }, "", ""},
		"the certificate of machines is missing": {
			func(f *checkedFiles) { os.Remove(f.config.Bootstrap.CertificateFile) }, "bootstrap.certificateFile: open ", "",
		},
		"the certificate of machines is missing and waited for": {
			func(f *checkedFiles) {
				f.config.Bootstrap.CertificateWait.Duration = time.Hour
				os.Remove(f.config.Bootstrap.CertificateFile)
			}, "bootstrap.certificateFile: open ", "",
		},
		"the certificate of machines expired": {
			func(f *checkedFiles) {
				f.pair(f.config.Bootstrap.CertificateFile, f.config.Bootstrap.KeyFile,
					func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Unix(1e9, 0), time.Unix(1.1e9, 0) })
			}, "bootstrap.certificateFile: ", "",
		},
	}
}

func authorityCases() map[string]fileCase {
	authorities := func(texts ...func(*checkedFiles) []byte) func(*checkedFiles) {
		return func(f *checkedFiles) {
			var all []byte
			for _, text := range texts {
				all = append(all, text(f)...)
			}
			f.put(f.config.Webhook.ClientCAFile, all)
		}
	}
	changed := func(change func(*x509.Certificate)) func(*checkedFiles) []byte {
		return func(f *checkedFiles) []byte { return f.longAuthority(f.callers, change) }
	}
	good := changed(func(*x509.Certificate) {})
	expired := changed(func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Unix(1e9, 0), time.Unix(1.1e9, 0) })
	leaf := changed(func(c *x509.Certificate) {
		c.IsCA, c.KeyUsage, c.ExtKeyUsage = false, x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	return map[string]fileCase{
		"authorities without a certificate": {
			authorities(func(*checkedFiles) []byte { return []byte("nothing") }), "webhook.clientCAFile: ", "",
		},
		"authorities with broken DER": {
			authorities(good, func(*checkedFiles) []byte {
				return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("broken")})
			}),
			"ca.crt: certificate 2: ", "",
		},
		"an authority that expired": {authorities(expired), `certificate 1 ("callers") expired at 2004-11-09T11:33:20Z`, ""},
		"an authority of the future": {
			authorities(changed(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })),
			"not valid before", "",
		},
		"an authority that expires soon": {
			authorities(changed(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Hour) })),
			"", "expires at",
		},
		"one of two authorities expired":      {authorities(expired, good), "", `certificate 1 ("callers") expired at`},
		"a server's certificate as authority": {authorities(leaf), "is not a certificate authority: give", ""},
		"an authority that may not sign": {authorities(changed(func(c *x509.Certificate) {
			c.KeyUsage = x509.KeyUsageCRLSign
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})), "is not a certificate authority", ""},
		"a server's certificate besides others": {authorities(leaf, good), "", "is not a certificate authority"},
		"the caller's own certificate": {
			authorities(func(f *checkedFiles) []byte {
				return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.caller.Certificate[0]})
			}),
			"", "so that it is accepted itself",
		},
		"the authorities of machines expired": {
			func(f *checkedFiles) { f.put(f.config.Bootstrap.ClientCAFile, expired(f)) }, "bootstrap.clientCAFile: ", "",
		},
	}
}

func kubeconfigCases() map[string]fileCase {
	kubeconfig := func(text func(*checkedFiles) []byte) func(*checkedFiles) {
		return func(f *checkedFiles) { f.put(f.config.Cluster.Kubeconfig, text(f)) }
	}
	fixed := func(text []byte) func(*checkedFiles) { return kubeconfig(func(*checkedFiles) []byte { return text }) }
	good := kubeconfigWith("", `"token": "`+secretToken+`"`)
	encoded := base64.StdEncoding.EncodeToString
	return map[string]fileCase{
		"a missing kubeconfig": {
			func(f *checkedFiles) { os.Remove(f.config.Cluster.Kubeconfig) }, "cluster.kubeconfig: open ", "",
		},
		"a missing kubeconfig of the management cluster": {
			func(f *checkedFiles) {
				f.config.Bootstrap.ClusterAPI = v1alpha1.ClusterAPI{
					Namespaces: []string{"fleet"}, ClusterName: "shop", Kubeconfig: "no-such",
				}
			}, "bootstrap.clusterAPI.kubeconfig: open no-such", "",
		},
		"a token in the place of a kubeconfig": {fixed([]byte(secretToken)), "is not a kubeconfig", ""},
		"a kubeconfig with a token of two lines": {
			fixed([]byte("users:\n- user:\n    token: " + secretToken + ": x\n  y: [")),
			"is not a kubeconfig", "",
		},
		"a kubeconfig without a current context": {
			fixed(bytes.Replace(good, []byte(`"current-context": "c"`), []byte(`"current-context": ""`), 1)),
			"has no current-context", "",
		},
		"a kubeconfig with a context that is not": {
			fixed(bytes.Replace(good, []byte(`"current-context": "c"`), []byte(`"current-context": "d"`), 1)),
			`has no context "d", which is its current-context`, "",
		},
		"a kubeconfig with a missing token file": {fixed(kubeconfigWith("", `"tokenFile": "no-such"`)), "cluster.kubeconfig: ", ""},
		"a kubeconfig with an empty token file": {
			kubeconfig(func(f *checkedFiles) []byte {
				f.put(filepath.Join(filepath.Dir(f.config.Cluster.Kubeconfig), "token"), nil)
				return kubeconfigWith("", `"tokenFile": "token"`)
			}), "cluster.kubeconfig: ", "",
		},
		"a kubeconfig with a broken authority": {
			fixed(kubeconfigWith(`, "certificate-authority-data": "`+encoded([]byte("broken"))+`"`, "")), "cluster.kubeconfig: ", "",
		},
		"a kubeconfig with a certificate and another key": {
			kubeconfig(func(f *checkedFiles) []byte {
				certificate, _ := f.callers.server()
				_, key := f.callers.server()
				return kubeconfigWith("", `"client-certificate-data": "`+encoded(certificate)+`", "client-key-data": "`+encoded(key)+`"`)
			}), "cluster.kubeconfig: ", "",
		},
		"a kubeconfig that everybody may read": {
			func(f *checkedFiles) { os.Chmod(f.config.Cluster.Kubeconfig, 0o604) }, "", "kubeconfig has the mode 0604",
		},
		"a token file that everybody may replace": {
			kubeconfig(func(f *checkedFiles) []byte {
				token := filepath.Join(filepath.Dir(f.config.Cluster.Kubeconfig), "token")
				f.put(token, []byte(secretToken))
				os.Chmod(token, 0o602)
				name, _ := json.Marshal(token)
				return kubeconfigWith("", `"tokenFile": `+string(name))
			}), "", "token has the mode 0602",
		},
	}
}

func otherFileCases() map[string]fileCase {
	put := func(path func(*checkedFiles) string, text string) func(*checkedFiles) {
		return func(f *checkedFiles) { f.put(path(f), []byte(text)) }
	}
	chain := func(f *checkedFiles) string { return f.config.Authorization.ConfigFile }
	mappings := func(f *checkedFiles) string { return f.config.IAM.File }
	webhook := goodChain + `- type: Webhook
  name: other
  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny,
    authorizedTTL: 1s, unauthorizedTTL: 1s, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /no-such-kubeconfig}}
`
	return map[string]fileCase{
		"certificates of AWS that are none": {
			put(func(f *checkedFiles) string { return f.config.Bootstrap.AWS.CertificatesFile }, "nothing"),
			"bootstrap.aws.certificatesFile: ", "",
		},
		"missing certificates of AWS": {
			func(f *checkedFiles) { os.Remove(f.config.Bootstrap.AWS.CertificatesFile) }, "bootstrap.aws.certificatesFile: open ", "",
		},
		"a chain of another kind":           {put(chain, "kind: Pod\n"), "authorization.configFile: ", ""},
		"a chain with an unknown field":     {put(chain, goodChain+"unknown: 1\n"), `authorization.yaml: unknown field "unknown"`, ""},
		"a chain with a missing kubeconfig": {put(chain, webhook), "/no-such-kubeconfig", ""},
		"a missing chain":                   {func(f *checkedFiles) { os.Remove(chain(f)) }, "authorization.configFile: ", ""},
		"missing mappings":                  {func(f *checkedFiles) { os.Remove(mappings(f)) }, "iam.file: open ", ""},
		"mappings that are no YAML":         {put(mappings, "mapRoles: ["), "iam.file: ", "iam.file: "},
		"an empty file with mappings":       {put(mappings, ""), "cannot read mapRoles, mapUsers, mapAccounts", "the file is empty"},
		"a list of mappings that is broken": {put(mappings, "mapRoles: {}\n"), "cannot read mapRoles, and", "iam.file: "},
		"a mapping that is wrong":           {put(mappings, goodMappings+"- {rolearn: ops, username: ops}\n"), "", "mapRoles[1]"},
	}
}
