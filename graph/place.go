package graph

import "strings"

// field is a place in an API object where it names another.
type field uint8

const (
	fieldNodeName field = iota
	fieldServiceAccountName
	fieldImagePullSecrets
	fieldInitEnv
	fieldInitEnvFrom
	fieldEnv
	fieldEnvFrom
	fieldEphemeralEnv
	fieldEphemeralEnvFrom
	fieldVolumeSecret
	fieldVolumeConfigMap
	fieldVolumeProjected
	fieldVolumeAzureFile
	fieldVolumeCephFS
	fieldVolumeCinder
	fieldVolumeFlex
	fieldVolumeRBD
	fieldVolumeScaleIO
	fieldVolumeISCSI
	fieldVolumeStorageOS
	fieldVolumeCSI
	fieldVolumeClaim
	fieldVolumeEphemeral
	fieldResourceClaims
	fieldResourceClaimStatuses
	fieldExtendedResourceClaim
	fieldClaimRef // this and all that follow are fields of persistent volumes
	fieldPVAzureFile
	fieldPVCephFS
	fieldPVCinder
	fieldPVFlex
	fieldPVRBD
	fieldPVScaleIO
	fieldPVISCSI
	fieldPVStorageOS
	fieldPVNodePublish
	fieldPVNodeStage
	fieldPVNodeExpand
	fieldCount
)

// ofPod reports whether the field is one of pods, through which an object is related to a node.
func (f field) ofPod() bool { return f < fieldClaimRef }

// fieldPaths has each field as a path; * stands for the name of the list entry.
var fieldPaths = [fieldCount]string{
	fieldNodeName:              "spec.nodeName",
	fieldServiceAccountName:    "spec.serviceAccountName",
	fieldImagePullSecrets:      "spec.imagePullSecrets",
	fieldInitEnv:               "spec.initContainers[name=*].env",
	fieldInitEnvFrom:           "spec.initContainers[name=*].envFrom",
	fieldEnv:                   "spec.containers[name=*].env",
	fieldEnvFrom:               "spec.containers[name=*].envFrom",
	fieldEphemeralEnv:          "spec.ephemeralContainers[name=*].env",
	fieldEphemeralEnvFrom:      "spec.ephemeralContainers[name=*].envFrom",
	fieldVolumeSecret:          "spec.volumes[name=*].secret",
	fieldVolumeConfigMap:       "spec.volumes[name=*].configMap",
	fieldVolumeProjected:       "spec.volumes[name=*].projected",
	fieldVolumeAzureFile:       "spec.volumes[name=*].azureFile",
	fieldVolumeCephFS:          "spec.volumes[name=*].cephfs",
	fieldVolumeCinder:          "spec.volumes[name=*].cinder",
	fieldVolumeFlex:            "spec.volumes[name=*].flexVolume",
	fieldVolumeRBD:             "spec.volumes[name=*].rbd",
	fieldVolumeScaleIO:         "spec.volumes[name=*].scaleIO",
	fieldVolumeISCSI:           "spec.volumes[name=*].iscsi",
	fieldVolumeStorageOS:       "spec.volumes[name=*].storageos",
	fieldVolumeCSI:             "spec.volumes[name=*].csi.nodePublishSecretRef",
	fieldVolumeClaim:           "spec.volumes[name=*].persistentVolumeClaim",
	fieldVolumeEphemeral:       "spec.volumes[name=*].ephemeral",
	fieldResourceClaims:        "spec.resourceClaims[name=*]",
	fieldResourceClaimStatuses: "status.resourceClaimStatuses[name=*]",
	fieldExtendedResourceClaim: ExtendedResourceClaimField,
	fieldClaimRef:              "spec.claimRef",
	fieldPVAzureFile:           "spec.azureFile.secretName",
	fieldPVCephFS:              "spec.cephfs.secretRef",
	fieldPVCinder:              "spec.cinder.secretRef",
	fieldPVFlex:                "spec.flexVolume.secretRef",
	fieldPVRBD:                 "spec.rbd.secretRef",
	fieldPVScaleIO:             "spec.scaleIO.secretRef",
	fieldPVISCSI:               "spec.iscsi.secretRef",
	fieldPVStorageOS:           "spec.storageos.secretRef",
	fieldPVNodePublish:         "spec.csi.nodePublishSecretRef",
	fieldPVNodeStage:           "spec.csi.nodeStageSecretRef",
	fieldPVNodeExpand:          "spec.csi.nodeExpandSecretRef",
}

// place is a field together with the list entry in it (a container, a volume,
// a claim): the field in the high 8 bits, the number of the entry's name in
// Graph.entries in the low 24.
type place uint32

const entryBits = 24

func (p place) field() field  { return field(p >> entryBits) }
func (p place) entry() uint32 { return uint32(p) & (1<<entryBits - 1) }

// entryNames numbers the names of list entries, which recur in many pods ("app",
// "data"). Number 0 is the empty name. Numbers of unused names are reused.
type entryNames struct {
	numbers map[string]uint32
	names   []entryName
	free    []uint32
}

type entryName struct {
	name string
	refs int
}

func newEntryNames() *entryNames {
	return &entryNames{numbers: map[string]uint32{}, names: make([]entryName, 1)}
}

// number returns the number of name, without counting a use of it. In a graph with
// more than 2²⁴ different names, the others get the empty name, which only affects
// paths.
func (e *entryNames) number(name string) uint32 {
	if name == "" {
		return 0
	}
	if n, ok := e.numbers[name]; ok {
		return n
	}
	var n uint32
	switch {
	case len(e.free) > 0:
		n = e.free[len(e.free)-1]
		e.free = e.free[:len(e.free)-1]
		e.names[n] = entryName{name: name}
	case len(e.names) < 1<<entryBits:
		n = uint32(len(e.names))
		e.names = append(e.names, entryName{name: name})
	default:
		return 0
	}
	e.numbers[name] = n
	return n
}

func (e *entryNames) retain(n uint32) {
	if n != 0 {
		e.names[n].refs++
	}
}

func (e *entryNames) release(n uint32) {
	if n == 0 {
		return
	}
	if e.names[n].refs--; e.names[n].refs == 0 {
		delete(e.numbers, e.names[n].name)
		e.names[n].name = ""
		e.free = append(e.free, n)
	}
}

// path renders a place: "spec.containers[name=api].env".
func (e *entryNames) path(p place) string {
	before, after, list := strings.Cut(fieldPaths[p.field()], "*")
	if !list {
		return before
	}
	return before + e.names[p.entry()].name + after
}
