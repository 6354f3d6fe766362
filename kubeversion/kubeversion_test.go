package kubeversion_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]kubeversion.Minor{
		"1.30":                30,
		"1.37":                37,
		"v1.37":               37,
		"v1.37.1":             37,
		"1.33+":               33,
		"v1.34.4-eks-113cf36": 34,
		"1.32.6-gke.1000":     32,
		"v1.31.0+k3s1":        31,
		"1.36-rc.0":           36,
	} {
		if got, err := kubeversion.Parse(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "form 1.MINOR",
		"1":                      "form 1.MINOR",
		"37":                     "form 1.MINOR",
		"1.":                     "form 1.MINOR",
		"1.x":                    "form 1.MINOR",
		"1.-37":                  "form 1.MINOR",
		"1.37x":                  "form 1.MINOR",
		" 1.37":                  "form 1.MINOR",
		"1.37 ":                  "form 1.MINOR",
		"2.37":                   "form 1.MINOR",
		"11.37":                  "form 1.MINOR",
		"vv1.37":                 "form 1.MINOR",
		"latest":                 "form 1.MINOR",
		"1.29":                   "want 1.30 to 1.37",
		"v1.29.9":                "want 1.30 to 1.37",
		"1.38":                   "want 1.30 to 1.37",
		"1.3":                    "want 1.30 to 1.37",
		"1.370":                  "want 1.30 to 1.37",
		"1.0000000":              "want 1.30 to 1.37",
		"1.99999999999999999999": "form 1.MINOR",
	} {
		got, err := kubeversion.Parse(text)
		if err == nil || got != 0 {
			t.Errorf("%q is read as %v", text, got)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %q, want %q in it", text, err, want)
		}
	}
}

func TestMinors(t *testing.T) {
	var names []string
	for _, m := range kubeversion.Minors() {
		if !m.Supported() {
			t.Errorf("%s is not supported", m)
		}
		names = append(names, m.String())
	}
	if got := strings.Join(names, " "); got != "1.30 1.31 1.32 1.33 1.34 1.35 1.36 1.37" {
		t.Errorf("minors are %s", got)
	}
	for _, m := range []kubeversion.Minor{0, 29, 38, -30} {
		if m.Supported() {
			t.Errorf("%s is supported", m)
		}
	}
}

// TestGates has, for each minor from 1.30 to 1.37, the default of each gate (on or
// off). Capitals mean that the gate cannot be changed. Source:
// pkg/features/kube_features.go of each minor.
func TestGates(t *testing.T) {
	for gate, row := range map[kubeversion.Gate]string{
		"AllowInsecureKubeletCertificateSigningRequests":   "ON  off off off off off off off",
		"AuthorizeNodeWithSelectors":                       "OFF off on  on  ON  ON  ON  ON ",
		"AuthorizeWithSelectors":                           "OFF off on  on  ON  ON  ON  ON ",
		"CSIVolumeHealth":                                  "off off off off off off off off",
		"ClusterTrustBundle":                               "off off off off off off off on ",
		"ConstrainedImpersonation":                         "OFF OFF OFF OFF OFF off on  on ",
		"DynamicResourceAllocation":                        "off off off off on  ON  ON  ON ",
		"KubeletServiceAccountTokenForCredentialProviders": "OFF OFF OFF off on  on  on  on ",
		"PodCertificateRequest":                            "OFF OFF OFF OFF off off off on ",
		"RecoverVolumeExpansionFailure":                    "off off on  on  ON  ON  ON  ON ",
		"ServiceAccountNodeAudienceRestriction":            "OFF OFF off on  on  on  on  on ",
	} {
		if !slices.Contains(kubeversion.Gates(), gate) {
			t.Errorf("%s is not among the gates", gate)
		}
		for i, want := range strings.Fields(row) {
			minor := kubeversion.Oldest + kubeversion.Minor(i)
			f := kubeversion.For(minor)
			if got := f.Enabled(gate); got != strings.EqualFold(want, "on") {
				t.Errorf("%s in %s: got %v, want %s", gate, minor, got, want)
			}
			if got := f.Settable(gate); got != (want == strings.ToLower(want)) {
				t.Errorf("%s in %s: settable is %v, want %s", gate, minor, got, want)
			}
			checkWith(t, f, gate)
		}
	}
	if got := len(kubeversion.Gates()); got != 11 || !slices.IsSorted(kubeversion.Gates()) {
		t.Errorf("gates are %v", kubeversion.Gates())
	}
}

// checkWith sets a gate both ways: the default is always possible, the opposite only
// if the gate is settable.
func checkWith(t *testing.T, f kubeversion.Features, gate kubeversion.Gate) {
	t.Helper()
	same, err := f.With(gate, f.Enabled(gate))
	if err != nil || same != f {
		t.Errorf("%s in %s, set to what it is: %v", gate, f.Minor(), err)
	}
	other, err := f.With(gate, !f.Enabled(gate))
	if set := err == nil; set != f.Settable(gate) {
		t.Errorf("%s in %s, set to the opposite: %v", gate, f.Minor(), err)
	} else if set && (other.Enabled(gate) == f.Enabled(gate) || other.Minor() != f.Minor()) {
		t.Errorf("%s in %s: setting it changed nothing", gate, f.Minor())
	} else if !set && other != f {
		t.Errorf("%s in %s: refused to set it, but did", gate, f.Minor())
	}
	for _, g := range kubeversion.Gates() {
		if g != gate && other.Enabled(g) != f.Enabled(g) {
			t.Errorf("%s in %s: setting it changed %s", gate, f.Minor(), g)
		}
	}
}

func TestFeaturesAreComparable(t *testing.T) {
	if kubeversion.For(36) == kubeversion.For(35) {
		t.Error("features of different minors are equal")
	}
	on, err := kubeversion.For(36).With(kubeversion.PodCertificateRequest, true)
	if err != nil || on == kubeversion.For(36) {
		t.Errorf("features with a gate set are equal to the defaults, %v", err)
	}
	off, err := on.With(kubeversion.PodCertificateRequest, false)
	if err != nil || off != kubeversion.For(36) {
		t.Errorf("setting a gate back does not lead back, %v", err)
	}
}

func TestUnknownGateIsOff(t *testing.T) {
	f := kubeversion.For(kubeversion.Latest)
	if f.Enabled("InPlacePodVerticalScaling") || f.Settable("InPlacePodVerticalScaling") || f.Enabled("") {
		t.Error("a gate that does not matter here is on")
	}
}

func TestWithOverrides(t *testing.T) {
	f := kubeversion.For(33)
	for _, tc := range []struct {
		rule, list string
		on, off    []kubeversion.Gate
	}{
		{"nothing", "", nil, nil},
		{"one gate", "ClusterTrustBundle=true", []kubeversion.Gate{"ClusterTrustBundle"}, nil},
		{
			"several", "ClusterTrustBundle=true,AuthorizeNodeWithSelectors=false",
			[]kubeversion.Gate{"ClusterTrustBundle"},
			[]kubeversion.Gate{"AuthorizeNodeWithSelectors"},
		},
		{"the last one counts", "ClusterTrustBundle=true,ClusterTrustBundle=false", nil, []kubeversion.Gate{"ClusterTrustBundle"}},
		{"spaces and empty items do not matter", " ClusterTrustBundle = true , ,", []kubeversion.Gate{"ClusterTrustBundle"}, nil},
		{
			"booleans as Go writes them", "ClusterTrustBundle=1,AuthorizeNodeWithSelectors=F",
			[]kubeversion.Gate{"ClusterTrustBundle"},
			[]kubeversion.Gate{"AuthorizeNodeWithSelectors"},
		},
	} {
		got, err := f.WithOverrides(tc.list)
		if err != nil {
			t.Errorf("%s: %v", tc.rule, err)
		}
		for _, gate := range kubeversion.Gates() {
			want := f.Enabled(gate) && !slices.Contains(tc.off, gate) || slices.Contains(tc.on, gate)
			if got.Enabled(gate) != want {
				t.Errorf("%s: %s is %v", tc.rule, gate, !want)
			}
		}
	}
}

func TestWithOverridesRefuses(t *testing.T) {
	for list, want := range map[string]string{
		"ClusterTrustBundle":     "not of the form",
		"ClusterTrustBundle=":    "not of the form",
		"ClusterTrustBundle=yes": "not of the form",
		"=true":                  "AuthorizeNodeWithSelectors", // the list of those that matter
		"NoSuchGate=true":        "NoSuchGate",
		"ClusterTrustBundle=true,AuthorizeNodeWithSelectors=false": "locked to true in Kubernetes 1.34",
	} {
		if got, err := kubeversion.For(34).WithOverrides(list); err == nil {
			t.Errorf("%q is taken as %+v", list, got)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %q, want %q in it", list, err, want)
		}
	}
	if _, err := kubeversion.For(37).WithOverrides("AuthorizeNodeWithSelectors=false"); err == nil ||
		!strings.Contains(err.Error(), "does not exist in Kubernetes 1.37") {
		t.Errorf("setting a gate that was removed: %v", err)
	}
}

// FuzzParse parses arbitrary text. A parsed version is supported, and its string
// parses to the same version.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"1.37", "v1.30.1", "1.33+", "1.29", "", "1.", "v", "1.37-\x00", "1.١"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		minor, err := kubeversion.Parse(text)
		if err != nil {
			if minor != 0 {
				t.Errorf("%q: %v beside the error %v", text, minor, err)
			}
			return
		}
		if !minor.Supported() {
			t.Errorf("%q is read as %v, which is not supported", text, minor)
		}
		if again, err := kubeversion.Parse(minor.String()); err != nil || again != minor {
			t.Errorf("%q is read as %v, and that as %v, %v", text, minor, again, err)
		}
	})
}

// FuzzWithOverrides sets gates from arbitrary text. Setting the resulting gates one
// by one gives the same features.
func FuzzWithOverrides(f *testing.F) {
	for _, list := range []string{"", "ClusterTrustBundle=true", "A=B", "=,=", "PodCertificateRequest=false,CSIVolumeHealth=true,"} {
		f.Add(37, list)
	}
	f.Fuzz(func(t *testing.T, minor int, list string) {
		if !kubeversion.Minor(minor).Supported() {
			return
		}
		defaults := kubeversion.For(kubeversion.Minor(minor))
		features, err := defaults.WithOverrides(list)
		if err != nil {
			return
		}
		var written []string
		for _, gate := range kubeversion.Gates() {
			value := "=false"
			if features.Enabled(gate) {
				value = "=true"
			}
			written = append(written, string(gate)+value)
		}
		if again, err := defaults.WithOverrides(strings.Join(written, ",")); err != nil || again != features {
			t.Errorf("%q leads to %v, and that to %+v, %v", list, written, again, err)
		}
	})
}
