package source

import (
	"encoding/hex"
	"slices"
	"unique"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podRecord is the kept part of a pod, except for its relations. There may be half a
// million pods, so shared names are interned, and so is the encoding of the volumes,
// which is the same for most pods.
type podRecord struct {
	uid     packedUID
	node    interned
	account interned
	rest    interned // an encoded podRest
	mirror  bool
	stamp   stamp
}

// podRest is the part of a pod that most pods have in common.
type podRest struct {
	// UID is set only if it does not have the usual form.
	UID     types.UID       `json:"uid,omitempty"`
	Volumes []corev1.Volume `json:"volumes,omitempty"`
}

// packedUID is a UID of the form that Kubernetes generates, 16 bytes in lower-case
// hexadecimal with dashes. The zero value is no UID.
type packedUID [16]byte

const uidLength = 36 // 8-4-4-4-12

// packUID reports false for UIDs of any other form.
func packUID(uid types.UID) (packedUID, bool) {
	var p packedUID
	if len(uid) != uidLength {
		return p, false
	}
	digits := uid[:8] + uid[9:13] + uid[14:18] + uid[19:23] + uid[24:]
	if _, err := hex.Decode(p[:], []byte(digits)); err != nil || p.String() != string(uid) {
		return packedUID{}, false
	}
	return p, true
}

func (p packedUID) String() string {
	if p == (packedUID{}) {
		return ""
	}
	d := hex.EncodeToString(p[:])
	return d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:]
}

func newPodRecord(pod *corev1.Pod) (podRecord, error) {
	r := podRecord{node: unique.Make(pod.Spec.NodeName), account: unique.Make(pod.Spec.ServiceAccountName)}
	_, r.mirror = pod.Annotations[corev1.MirrorPodAnnotationKey]
	rest := podRest{Volumes: tokenVolumes(pod.Spec.Volumes)}
	var packed bool
	if r.uid, packed = packUID(pod.UID); !packed {
		rest.UID = pod.UID
	}
	var err error
	r.rest, err = encodeRecord(&rest)
	return r, err
}

// setUnnamedClaims records whether the pod has resource claims of unknown name.
func (o *objects) setUnnamedClaims(key objectKey, pod *corev1.Pod) {
	unnamed := slices.ContainsFunc(pod.Spec.ResourceClaims, func(claim corev1.PodResourceClaim) bool {
		return claim.ResourceClaimTemplateName != nil &&
			!slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool {
				return s.Name == claim.Name
			})
	})
	if unnamed && pod.Spec.NodeName != "" {
		o.unnamedClaims[key] = unique.Make(pod.Spec.NodeName)
	} else {
		delete(o.unnamedClaims, key)
	}
}

// encodeRecord encodes the kept part of an object. On an error it returns an empty
// record, which grants less.
func encodeRecord(kept any) (interned, error) {
	text, err := json.Marshal(kept, compact())
	if err != nil {
		return unique.Make("{}"), err
	}
	return unique.Make(string(text)), nil
}

// tokenVolumes selects the volumes that decide which audiences and certificates a
// node may request. The names of projected volumes, which differ in each pod, are
// left out.
func tokenVolumes(volumes []corev1.Volume) []corev1.Volume {
	var picked []corev1.Volume
	for _, v := range volumes {
		source := corev1.VolumeSource{
			Projected:             tokenProjections(v.Projected),
			PersistentVolumeClaim: v.PersistentVolumeClaim,
			GCEPersistentDisk:     v.GCEPersistentDisk,
			AWSElasticBlockStore:  v.AWSElasticBlockStore,
			AzureDisk:             v.AzureDisk,
			AzureFile:             v.AzureFile,
			Cinder:                v.Cinder,
			VsphereVolume:         v.VsphereVolume,
			PortworxVolume:        v.PortworxVolume,
		}
		if v.CSI != nil {
			source.CSI = &corev1.CSIVolumeSource{Driver: v.CSI.Driver}
		}
		if v.Ephemeral != nil {
			// API servers require a template, and its presence is what makes the
			// claim count.
			source.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}
		}
		if source == (corev1.VolumeSource{}) {
			continue
		}
		kept := corev1.Volume{VolumeSource: source}
		if source.Projected == nil {
			kept.Name = v.Name
		}
		picked = append(picked, kept)
	}
	return picked
}

func tokenProjections(projected *corev1.ProjectedVolumeSource) *corev1.ProjectedVolumeSource {
	if projected == nil {
		return nil
	}
	var picked []corev1.VolumeProjection
	for _, s := range projected.Sources {
		if s.ServiceAccountToken != nil || s.PodCertificate != nil {
			picked = append(picked, corev1.VolumeProjection{ServiceAccountToken: s.ServiceAccountToken, PodCertificate: s.PodCertificate})
		}
	}
	if picked == nil {
		return nil
	}
	return &corev1.ProjectedVolumeSource{Sources: picked}
}

// Pod returns the kept part of a pod: its names, UID and mirror mark, its node and
// service account, and those volumes that decide which token audiences and
// certificates its node may request. Objects that the pod refers to are in
// [State.Graph].
func (s *State) Pod(namespace, name string) (*corev1.Pod, bool) {
	s.lookUp(kindPod, namespace, name)
	s.mu.RLock()
	r, ok := s.objects.pods[keyOf(namespace, name)]
	s.mu.RUnlock()
	if !ok {
		return nil, false
	}
	var rest podRest
	if err := json.Unmarshal([]byte(r.rest.Value()), &rest); err != nil {
		panic("pod record does not decode: " + err.Error())
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: rest.UID},
		Spec: corev1.PodSpec{
			NodeName:           r.node.Value(),
			ServiceAccountName: r.account.Value(),
			Volumes:            rest.Volumes,
		},
	}
	if rest.UID == "" {
		pod.UID = types.UID(r.uid.String())
	}
	if r.mirror {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	}
	return pod, true
}

// volumeRecord is the part of a persistent volume that decides which CSI driver
// serves it.
type volumeRecord struct {
	source interned // an encoded corev1.PersistentVolumeSource
	stamp  stamp
}

func newVolumeRecord(pv *corev1.PersistentVolume) (volumeRecord, error) {
	kept := pv.Spec.PersistentVolumeSource
	if kept.CSI != nil {
		kept.CSI = &corev1.CSIPersistentVolumeSource{Driver: kept.CSI.Driver}
	}
	if file := kept.AzureFile; file != nil && file.SecretNamespace == nil && pv.Spec.ClaimRef != nil {
		// The claim, which is not kept, gives the default for the secret's namespace.
		// Without a namespace the volume maps to no driver.
		defaulted := *file
		defaulted.SecretNamespace = &pv.Spec.ClaimRef.Namespace
		kept.AzureFile = &defaulted
	}
	source, err := encodeRecord(&kept)
	return volumeRecord{source: source}, err
}

// PersistentVolume returns the kept part of a persistent volume: its name and the
// source that decides which CSI driver serves it. Claim and secrets are in
// [State.Graph].
func (s *State) PersistentVolume(name string) (*corev1.PersistentVolume, bool) {
	s.lookUp(kindPersistentVolume, "", name)
	s.mu.RLock()
	r, ok := s.objects.volumes[keyOf("", name)]
	s.mu.RUnlock()
	if !ok {
		return nil, false
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := json.Unmarshal([]byte(r.source.Value()), &pv.Spec.PersistentVolumeSource); err != nil {
		panic("volume record does not decode: " + err.Error())
	}
	return pv, true
}

// compact marshals API objects as Kubernetes does, without zero fields. API servers
// do not validate all strings; bytes that are not UTF-8 are replaced, as in the
// requests that webhooks get.
func compact() json.Options {
	return json.JoinOptions(
		jsontext.AllowInvalidUTF8(true),
		json.OmitZeroStructFields(true),
		// An empty object, such as the source of an ephemeral volume, counts.
		jsonv1.OmitEmptyWithLegacySemantics(true),
		json.Deterministic(true),
	)
}
