package source

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

// update is true when golden files are to be written.
var update = os.Getenv("UPDATE_GOLDEN") != ""

// filler sets fields of an object; each string says which field it is in.
type filler struct {
	rand *rand.Rand // nil sets all fields
}

func (f filler) leaveOut() bool { return f.rand != nil && f.rand.IntN(2) == 0 }

func (f filler) fill(v reflect.Value, path string) {
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, metav1.TypeMeta, resource.Quantity, intstr.IntOrString, metav1.FieldsV1:
		return
	}
	switch v.Kind() {
	case reflect.String:
		if !f.leaveOut() {
			v.SetString("«" + path + "»")
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Pointer:
		if !f.leaveOut() {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), path)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || f.leaveOut() {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i), path+"[]")
		}
	case reflect.Map:
		if f.leaveOut() {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString("«" + path + "{key}»")
		f.fill(value, path+"{}")
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "" || field.Anonymous:
				f.fill(v.Field(i), path)
			case path == "":
				f.fill(v.Field(i), name)
			default:
				f.fill(v.Field(i), path+"."+name)
			}
		}
	}
}

// filled returns an object of the kind with many fields.
func (f filler) filled(k kind) apiObject {
	o := k.describe().empty()
	f.fill(reflect.ValueOf(o).Elem(), "")
	o.SetName("name")
	o.SetNamespace("")
	if k.describe().namespaced {
		o.SetNamespace("namespace")
	}
	if pod, ok := o.(*corev1.Pod); ok {
		nameDistinctly(&pod.Spec)
		if !f.leaveOut() {
			pod.Status.Phase = corev1.PodFailed
		}
	}
	if ns, ok := o.(*corev1.Namespace); ok && !f.leaveOut() {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
	if pod, ok := o.(*corev1.Pod); ok && !f.leaveOut() {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "«mirror»", "other": "«annotation»"}
	}
	return o
}

// nameDistinctly names volumes and containers as API servers demand it: each once.
func nameDistinctly(spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		spec.Volumes[i].Name = fmt.Sprintf("«spec.volumes[].name» %d", i)
	}
	for kind, containers := range map[string][]corev1.Container{"initContainers": spec.InitContainers, "containers": spec.Containers} {
		for i := range containers {
			containers[i].Name = fmt.Sprintf("«spec.%s[].name» %d", kind, i)
			for j := range containers[i].VolumeMounts {
				containers[i].VolumeMounts[j].Name = fmt.Sprintf("«spec.volumes[].name» %d", j)
			}
		}
	}
	for i := range spec.EphemeralContainers {
		spec.EphemeralContainers[i].Name = fmt.Sprintf("«spec.ephemeralContainers[].name» %d", i)
	}
}

// Exactly the fields in the golden files are kept, and more of them for an inventory.
func TestKeptFields(t *testing.T) {
	for golden, forInventory := range map[string]bool{"testdata/kept.golden": false, "testdata/kept_inventory.golden": true} {
		var b strings.Builder
		for k := range kindCount {
			if k.describe().inventory && !forInventory {
				continue
			}
			o := filler{}.filled(k)
			trim(o, forInventory)
			text, err := encode(k, o)
			if err != nil {
				t.Fatal(err)
			}
			fields := regexp.MustCompile(`«[^»]*»`).FindAllString(string(text), -1)
			slices.Sort(fields)
			for _, field := range slices.Compact(fields) {
				fmt.Fprintf(&b, "%s %s\n", k, strings.Trim(field, "«»"))
			}
		}
		if update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want := read(t, golden); b.String() != want {
			t.Errorf("kept fields are not those in %s; run with UPDATE_GOLDEN=1 and look at the difference\n%s", golden, b.String())
		}
	}
}

// eachTrim runs a test for each kind, with and without an inventory.
func eachTrim(t *testing.T, test func(t *testing.T, k kind, forInventory bool)) {
	for k := range kindCount {
		for _, forInventory := range []bool{false, true} {
			if k.describe().inventory && !forInventory {
				continue
			}
			t.Run(fmt.Sprintf("%s inventory=%v", k, forInventory), func(t *testing.T) { test(t, k, forInventory) })
		}
	}
}

// Decoding from a file gives the same object as trimming one from a cluster.
func TestDecodeKeepsWhatTrimKeeps(t *testing.T) {
	random, objects := rand.New(rand.NewPCG(1, 2)), 300
	if testing.Short() {
		objects = 30
	}
	eachTrim(t, func(t *testing.T, k kind, forInventory bool) {
		for i := range objects {
			f := filler{rand: random}
			if i == 0 {
				f = filler{}
			}
			o := f.filled(k)
			o.GetObjectKind().SetGroupVersionKind(k.describe().groupVersionKind())
			text, err := stdjson.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			trim(o, forInventory)
			want, err := encode(k, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := decoded(t, k, text, forInventory); !bytes.Equal(got, want) {
				t.Fatalf("from a file\n%s\nfrom a cluster\n%s", got, want)
			}
		}
	})
}

// decoded reads an object from a file, and encodes the kept fields.
func decoded(t *testing.T, k kind, text []byte, forInventory bool) []byte {
	t.Helper()
	var all []object
	read := manifest.Parallel[content]{
		Stdin: bytes.NewReader(text),
		Decode: func(into *content, d *manifest.Document) error {
			return into.decode(d, FileOptions{Inventory: forInventory})
		},
		Apply: func(c *content) error {
			all = append(all, c.objects...)
			return nil
		},
		Progress: func(int64) {},
	}
	if err := read.Read(t.Context(), manifest.File{Name: "stdin", Path: "-"}); err != nil {
		t.Fatalf("%v in %.2000s", err, text)
	}
	encoded, err := encode(k, all[0].api)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// Trimming a trimmed object changes nothing, so that a snapshot can be read and
// written again.
func TestTrimIsIdempotent(t *testing.T) {
	random, objects := rand.New(rand.NewPCG(3, 4)), 100
	if testing.Short() {
		objects = 10
	}
	eachTrim(t, func(t *testing.T, k kind, forInventory bool) {
		for range objects {
			o := filler{rand: random}.filled(k)
			trim(o, forInventory)
			once, err := encode(k, o)
			if err != nil {
				t.Fatal(err)
			}
			trim(o, forInventory)
			if twice, _ := encode(k, o); !bytes.Equal(once, twice) {
				t.Fatalf("once\n%s\ntwice\n%s", once, twice)
			}
		}
	})
}

// The records of pods and volumes return the kept fields.
func TestRecordsReturnTheKeptFields(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		pod := filler{rand: random}.filled(kindPod).(*corev1.Pod)
		if random.IntN(2) == 0 {
			pod.UID = "0b6a5d60-5f2c-4a7f-9d0e-8f3f6b7f2c11"
		}
		trim(pod, false)
		s := newState()
		if _, err := s.set(kindPod, pod, 0); err != nil {
			t.Fatal(err)
		}
		got, ok := s.Pod(pod.Namespace, pod.Name)
		_, mirror := got.Annotations[corev1.MirrorPodAnnotationKey]
		_, wantMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		switch {
		case !ok, got.UID != pod.UID, mirror != wantMirror,
			got.Spec.NodeName != pod.Spec.NodeName, got.Spec.ServiceAccountName != pod.Spec.ServiceAccountName:
			t.Fatalf("got %+v, want %+v", got, pod)
		case !reflect.DeepEqual(got.Spec.Volumes, tokenVolumes(pod.Spec.Volumes)):
			t.Fatalf("got volumes\n%s\nwant\n%s", toYAML(got.Spec.Volumes), toYAML(tokenVolumes(pod.Spec.Volumes)))
		}
	}
}

// The claim of an ephemeral volume counts for audiences if it has a template, whose
// content is not kept.
func TestEphemeralVolumesHaveATemplate(t *testing.T) {
	s := newState()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}},
	}}}}
	pod.Namespace, pod.Name = "shop", "api"
	if _, err := s.set(kindPod, pod, 0); err != nil {
		t.Fatal(err)
	}
	got, _ := s.Pod("shop", "api")
	if v := got.Spec.Volumes; len(v) != 1 || v[0].Name != "scratch" || v[0].Ephemeral == nil || v[0].Ephemeral.VolumeClaimTemplate == nil {
		t.Errorf("got %s", toYAML(v))
	}
}

// The namespace of the secret decides whether an azureFile volume maps to a CSI
// driver.
func TestAzureFileVolumesHaveANamespace(t *testing.T) {
	for _, tc := range []struct {
		rule  string
		file  corev1.AzureFilePersistentVolumeSource
		claim *corev1.ObjectReference
		want  *string
	}{
		{
			"the claim's",
			corev1.AzureFilePersistentVolumeSource{SecretName: "s"},
			&corev1.ObjectReference{Namespace: "shop", Name: "c"}, new("shop"),
		},
		{
			"its own",
			corev1.AzureFilePersistentVolumeSource{SecretName: "s", SecretNamespace: new("vault")},
			&corev1.ObjectReference{Namespace: "shop", Name: "c"}, new("vault"),
		},
		{
			"its own, which is empty",
			corev1.AzureFilePersistentVolumeSource{SecretName: "s", SecretNamespace: new("")},
			&corev1.ObjectReference{Namespace: "shop", Name: "c"}, new(""),
		},
		{"none without a claim", corev1.AzureFilePersistentVolumeSource{SecretName: "s"}, nil, nil},
	} {
		s := newState()
		pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: tc.claim}}
		pv.Name, pv.Spec.AzureFile = "files", &tc.file
		if _, err := s.set(kindPersistentVolume, pv, 0); err != nil {
			t.Fatal(err)
		}
		got, _ := s.PersistentVolume("files")
		if namespace := got.Spec.AzureFile.SecretNamespace; !reflect.DeepEqual(namespace, tc.want) {
			t.Errorf("%s: got %s", tc.rule, toYAML(got.Spec.AzureFile))
		}
	}
}

func TestPackedUID(t *testing.T) {
	for uid, packs := range map[string]bool{
		"0b6a5d60-5f2c-4a7f-9d0e-8f3f6b7f2c11": true,
		"0B6A5D60-5F2C-4A7F-9D0E-8F3F6B7F2C11": false, // would be returned in lower case
		"0b6a5d60x5f2c-4a7f-9d0e-8f3f6b7f2c11": false,
		"00000000-0000-0000-0000-000000000000": false, // means no UID
		"72c5ff53b1f7ad2f4d76f3a0f9c1ad5e":     false,
		"":                                     false,
	} {
		packed, ok := packUID(types.UID(uid))
		if ok != packs {
			t.Errorf("%q packs: %v", uid, ok)
		}
		if ok && packed.String() != uid {
			t.Errorf("%q comes back as %q", uid, packed)
		}
	}
}
