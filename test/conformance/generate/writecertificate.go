package generate

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podCertificate is a request for the certificate of a pod on the node.
func podCertificate() kind {
	return kind{
		name: "podcertificaterequests create", weight: 16, outcome: Allowed, draw: drawPodCertificate, mutations: podCertificateMutations(),
		finish: func(d *draft) {
			d.Object = d.request
			if chance(d.r, 25) {
				d.Version = "v1beta1"
				d.Object = &certificatesv1beta1.PodCertificateRequest{ObjectMeta: d.request.ObjectMeta, Spec: specV1beta1(&d.request.Spec)}
			}
		},
	}
}

func specV1beta1(s *certificatesv1.PodCertificateRequestSpec) certificatesv1beta1.PodCertificateRequestSpec {
	return certificatesv1beta1.PodCertificateRequestSpec{
		SignerName: s.SignerName, PodName: s.PodName, PodUID: s.PodUID, ServiceAccountName: s.ServiceAccountName,
		ServiceAccountUID: s.ServiceAccountUID, NodeName: s.NodeName, NodeUID: s.NodeUID,
	}
}

func drawPodCertificate(d *draft) {
	pod := d.certifiablePod()
	d.request = &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "req"}}
	d.request.Spec = certificatesv1.PodCertificateRequestSpec{
		SignerName: d.signer(pod), PodName: pod.Name, PodUID: pod.UID, ServiceAccountName: pod.Spec.ServiceAccountName,
		NodeName: types.NodeName(d.node), NodeUID: d.index.nodeUID(d.node),
	}
	d.request.Spec.ServiceAccountUID = "uid-none"
	if account := d.index.accounts[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}]; account != nil {
		d.request.Spec.ServiceAccountUID = account.UID
	}
	d.about("CREATE", "certificates.k8s.io", "podcertificaterequests", "", pod.Namespace, pick(d.r, []string{"req", ""}))
}

// certifiablePod draws a pod of the node, mostly one with a projected
// certificate.
func (d *draft) certifiablePod() *corev1.Pod {
	own := d.index.pods[d.node]
	with := slices.DeleteFunc(slices.Clone(own), func(pod *corev1.Pod) bool { return len(signersOf(pod)) == 0 })
	if len(with) > 0 && chance(d.r, 70) {
		return pick(d.r, with)
	}
	return d.ownPod()
}

func signersOf(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, p := range v.Projected.Sources {
			if p.PodCertificate != nil {
				names = append(names, p.PodCertificate.SignerName)
			}
		}
	}
	return names
}

func (d *draft) signer(pod *corev1.Pod) string {
	if names := signersOf(pod); len(names) > 0 && chance(d.r, 80) {
		return pick(d.r, names)
	}
	return pick(d.r, signers)
}

func podCertificateMutations() []mutation {
	spec := func(change func(*draft, *certificatesv1.PodCertificateRequestSpec)) func(*draft) {
		return func(d *draft) { change(d, &d.request.Spec) }
	}
	type s = certificatesv1.PodCertificateRequestSpec
	return []mutation{
		{"for another node", Refused, spec(func(d *draft, s *s) { s.NodeName = types.NodeName(d.otherNode()) })},
		{"for another uid of the node", Refused, spec(func(d *draft, s *s) { s.NodeUID = pick(d.r, []types.UID{"", s.NodeUID + "0"}) })},
		{"for a pod that is not known", Refused, spec(func(_ *draft, s *s) { s.PodName = "gone" })},
		{"for another uid of the pod", Refused, spec(func(d *draft, s *s) { s.PodUID = pick(d.r, []types.UID{"", s.PodUID + "0"}) })},
		{"for a pod elsewhere", Refused, spec(func(d *draft, s *s) {
			pod := d.foreignPod()
			d.Namespace, d.request.Namespace = pod.Namespace, pod.Namespace
			s.PodName, s.PodUID = pod.Name, pod.UID
		})},
		{"for a mirror pod", Refused, spec(func(d *draft, s *s) {
			for _, pod := range d.index.pods[d.node] {
				if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
					d.Namespace, s.PodName, s.PodUID = pod.Namespace, pod.Name, pod.UID
					return
				}
			}
			s.PodUID = "none"
		})},
		{"for another service account", Refused, spec(func(d *draft, s *s) { s.ServiceAccountName = pick(d.r, []string{"", "other"}) })},
		{
			"for another uid of the service account", Refused,
			spec(func(d *draft, s *s) { s.ServiceAccountUID = pick(d.r, []types.UID{"", s.ServiceAccountUID + "0"}) }),
		},
		{
			"for another signer", Either,
			spec(func(d *draft, s *s) { s.SignerName = pick(d.r, append([]string{"other.example/s"}, signers...)) }),
		},
		{"update", Refused, func(d *draft) { d.Operation = "UPDATE" }},
		{"delete", Refused, func(d *draft) { d.Operation = "DELETE" }},
		{"status", Refused, func(d *draft) { d.Subresource = "status" }},
		{"another namespace in the object", Allowed, func(d *draft) { d.request.Namespace = "elsewhere" }},
	}
}

// signingRequest is a certificate signing request of a kubelet's signer.
func signingRequest() kind {
	return kind{
		name: "certificatesigningrequests create", weight: 12, outcome: Allowed,
		draw: func(d *draft) {
			d.csr = &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1"}}
			d.csr.Spec.SignerName = pick(d.r,
				[]string{certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName})
			d.csr.Spec.Request = requestPEM("system:node:" + d.node)
			d.about("CREATE", "certificates.k8s.io", "certificatesigningrequests", "", "", "csr-1")
		},
		mutations: signingMutations(),
		finish:    func(d *draft) { d.Object = d.csr },
	}
}

// signingMutations are the possible mistakes of a signing request. While the gate
// AllowInsecureKubeletCertificateSigningRequests is on, nothing is.
func signingMutations() []mutation {
	body := func(make func(d *draft, own string) []byte) func(*draft) {
		return func(d *draft) { d.csr.Spec.Request = make(d, "system:node:"+d.node) }
	}
	return []mutation{
		{"another signer", Allowed, func(d *draft) {
			d.csr.Spec.SignerName = pick(d.r,
				[]string{
					"", "example.com/s", "kubernetes.io/legacy-unknown", "kubernetes.io/kube-apiserver-client",
					"Kubernetes.io/kubelet-serving",
				})
			d.csr.Spec.Request = pick(d.r, [][]byte{nil, []byte("x"), requestPEM("system:node:x")})
		}},
		{"the other kubelet signer", Allowed, func(d *draft) { d.csr.Spec.SignerName = certificatesv1.KubeletServingSignerName }},
		{"another common name", Either, body(func(d *draft, own string) []byte {
			return requestPEM(pick(d.r,
				[]string{"", d.node, own + " ", "System" + own[6:], "system:node:" + d.otherNode(), "system:nodes:" + d.node}))
		})},
		{"no common name", Either, body(func(*draft, string) []byte { return requestPEM() })},
		{"own common name last", Allowed, body(func(_ *draft, own string) []byte { return requestPEM("system:node:other", own) })},
		{"own common name first", Either, body(func(_ *draft, own string) []byte { return requestPEM(own, "system:node:other") })},
		{
			"text before it", Allowed,
			body(func(_ *draft, own string) []byte { return append([]byte("some text\nmore\n"), requestPEM(own)...) }),
		},
		{"text after it", Allowed, body(func(_ *draft, own string) []byte { return append(requestPEM(own), "more\n"...) })},
		{
			"own block first", Allowed,
			body(func(_ *draft, own string) []byte { return append(requestPEM(own), requestPEM("system:node:other")...) }),
		},
		{
			"own block second", Either,
			body(func(_ *draft, own string) []byte { return append(requestPEM("system:node:other"), requestPEM(own)...) }),
		},
		{"a certificate block first", Either, body(func(_ *draft, own string) []byte {
			return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), requestPEM(own)...)
		})},
		{"a broken block first", Allowed, body(func(_ *draft, own string) []byte {
			return append([]byte("-----BEGIN CERTIFICATE REQUEST-----\n!!\n-----END CERTIFICATE REQUEST-----\n"), requestPEM(own)...)
		})},
		{"headers in the block", Allowed, body(func(_ *draft, own string) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Headers: map[string]string{"A": "b"}, Bytes: requestDER(own)})
		})},
		{"another type of block", Either, body(func(d *draft, own string) []byte {
			return pem.EncodeToMemory(&pem.Block{
				Type:  pick(d.r, []string{"NEW CERTIFICATE REQUEST", "CERTIFICATE", "certificate request"}),
				Bytes: requestDER(own),
			})
		})},
		{"no PEM", Either, body(func(d *draft, own string) []byte { return pick(d.r, [][]byte{nil, []byte("x"), requestDER(own)}) })},
		{"a truncated request", Either, body(func(d *draft, own string) []byte {
			der := requestDER(own)
			return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der[:d.r.IntN(len(der))]})
		})},
		{"bytes after the request", Either, body(func(_ *draft, own string) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: append(requestDER(own), 0)})
		})},
		{"a signature that does not fit", Allowed, body(func(_ *draft, own string) []byte {
			der := requestDER(own)
			der[len(der)-1] ^= 1
			return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		})},
	}
}

// signingRequestOther is everything about signing requests but their creation.
func signingRequestOther() kind {
	k := signingRequest()
	k.name, k.weight, k.mutations = "certificatesigningrequests, not their creation", 2, nil
	draw := k.draw
	k.draw = func(d *draft) {
		draw(d)
		d.csr.Spec.Request = requestPEM("system:node:other")
		d.Operation, d.Subresource = pick(d.r, []string{"UPDATE", "DELETE"}), pick(d.r, []string{"", "status", "approval"})
	}
	return k
}

func requestPEM(commonNames ...string) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: requestDER(commonNames...)})
}

// requestDER makes a signing request with these common names, in order. The key
// is always the same one.
func requestDER(commonNames ...string) []byte {
	template := &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}}}
	for _, name := range commonNames {
		template.Subject.ExtraNames = append(template.Subject.ExtraNames, pkix.AttributeTypeAndValue{
			Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: name,
		})
	}
	der, err := x509.CreateCertificateRequest(nil, template, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		panic(err) // the template is fixed but for its names, which are texts
	}
	return der
}
