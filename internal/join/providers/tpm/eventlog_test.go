package tpm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-eventlog/extract"
	"github.com/google/go-eventlog/tcg"
	eventlogs "github.com/google/go-eventlog/testdata"

	"github.com/node-authorizer/node-authorizer/attest"
)

// bank is a hash that an event log announces, with the size of its digests.
type bank struct{ Hash, Size uint16 }

// the identifiers of TCG's registry of algorithms
const bankSHA256 = 0xb

// little writes values as event logs have them.
func little(values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err) // only for types without a size
		}
	}
	return b.Bytes()
}

// announced is the first event of a log.
func announced(banks ...bank) []byte {
	data := little([]byte("Spec ID Event03\x00"), uint32(0), []byte{0, 2, 0, 2}, uint32(len(banks)), banks, byte(0))
	return little(uint32(0), uint32(tcg.NoAction), make([]byte, 20), uint32(len(data)), data)
}

// logged is an event of the PCR of Secure Boot, with the digest of its data.
func logged(kind tcg.EventType, data []byte) []byte {
	digest := sha256.Sum256(data)
	return little(uint32(secureBootPCR), uint32(kind), uint32(1), uint16(bankSHA256), digest, uint32(len(data)), data)
}

// variable is the data of an event about a variable of the firmware.
func variable(name string, value []byte) []byte {
	return little(make([]byte, 16), uint64(len(name)), uint64(len(value)), utf16.Encode([]rune(name)), value)
}

// database is a signature database with one list of certificates, whose header has these sizes.
func database(list, header, each uint32) []byte {
	certificates := []byte{0xa1, 0x59, 0xc0, 0xa5, 0xe4, 0x94, 0xa7, 0x4a, 0x87, 0xb5, 0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72}
	return little(certificates, list, header, each, make([]byte, 72))
}

// extended is the value of a PCR after events.
func extended(datas ...[]byte) []byte {
	value := make([]byte, sha256.Size)
	for _, data := range datas {
		digest := sha256.Sum256(data)
		sum := sha256.Sum256(append(value, digest[:]...))
		value = sum[:]
	}
	return value
}

// TestHostileEventLogs: root on a machine can add events to a PCR, and write any log that leads to its value.
func TestHostileEventLogs(t *testing.T) {
	const setting = tcg.EFIVariableDriverConfig
	sha256Only := announced(bank{bankSHA256, sha256.Size})
	db := func(list, header, each uint32) []byte { return variable("db", database(list, header, each)) }
	manyDigests := bytes.Repeat(little(uint16(bankSHA256)), 9000)
	for _, tc := range []struct {
		rule  string
		first []byte
		kind  tcg.EventType
		data  []byte
		says  string
	}{
		{"an event of an unknown type ends the library's stack", sha256Only, 0x800000e1, []byte("a"), "of type 0x800000e1"},
		{"signatures that are shorter than their owner's name need 4 GiB", sha256Only, setting, db(100, 0, 0), "no known form"},
		{"signatures that are longer than their list", sha256Only, setting, db(100, 0, 1<<31), "no known form"},
		{"a list that is longer than its database", sha256Only, setting, db(101, 0, 72), "no known form"},
		{"a list that is shorter than its header", sha256Only, setting, db(27, 0, 72), "no known form"},
		{"a list with a header of its own", sha256Only, setting, db(100, 8, 64), "no known form"},
		{"signatures that do not fill their list", sha256Only, setting, db(100, 0, 70), "no known form"},
		{"a variable without its end", sha256Only, setting, make([]byte, 20), "no known form"},
		{"a database of the right sizes reaches the library", sha256Only, setting, db(100, 0, 72), "failed parsing signature database"},
		{"too many banks", announced(slices.Repeat([]bank{{bankSHA256, 4000}}, 5000)...), 0, manyDigests, "more or longer digests"},
		{"digests that are too long", announced(bank{bankSHA256, 4000}, bank{bankSHA256, 1}), 0, manyDigests, "more or longer digests"},
		{"banks without their end", announced(bank{bankSHA256, 32})[:62], 0, nil, "greater than remaining"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			began := time.Now()
			b := &booted{values: map[int][]byte{secureBootPCR: extended(tc.data)}, log: tc.first}
			if tc.data != nil {
				b.log = slices.Concat(tc.first, logged(tc.kind, tc.data))
			}
			problem, err := (&policy{Name: "secure", SecureBoot: true}).problem(b)
			refusal, _ := errors.AsType[*attest.Refusal](err)
			if problem != "" || refusal == nil || refusal.Code != EventLogInvalid || !strings.Contains(refusal.Detail, tc.says) {
				t.Errorf("%q, %v, want %s", problem, err, tc.says)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestSecureBootOfGenuineEventLogs: what is left out for the library changes no result.
func TestSecureBootOfGenuineEventLogs(t *testing.T) {
	for name, log := range map[string][]byte{
		"arch": eventlogs.ArchLinuxWorkstationEventLog, "debian": eventlogs.Debian10EventLog, "glinux": eventlogs.GlinuxAlexEventLog,
		"rhel8": eventlogs.Rhel8EventLog, "ubuntu-1804": eventlogs.Ubuntu1804AmdSevEventLog, "no-dbx": eventlogs.Ubuntu2104NoDbxEventLog,
		"no-secure-boot": eventlogs.Ubuntu2104NoSecureBootEventLog, "ubuntu-2404": eventlogs.Ubuntu2404AmdSevSnpEventLog,
		"cos-85": eventlogs.Cos85AmdSevEventLog, "cos-93": eventlogs.Cos93AmdSevEventLog, "cos-101": eventlogs.Cos101AmdSevEventLog,
	} {
		t.Run(name, func(t *testing.T) {
			if !plausible(log) {
				t.Error("its digests are refused")
			}
			f := newFakeTPM(t)
			f.measured(log)
			b := &booted{values: map[int][]byte{2: f.pcrs[2], secureBootPCR: f.pcrs[secureBootPCR]}, log: log}
			if err := b.replay(); (err != nil) != (name == "debian") { // whose digests are SHA-1
				t.Fatal(err)
			}
			want, wantErr := extract.SecureBootState(b.events, extract.TPMRegisterConfig)
			on, err := secureBoot(b.events)
			if on != want.GetEnabled() || (err == nil) != (wantErr == nil) {
				t.Errorf("%v, %v, want %v, %v", on, err, want.GetEnabled(), wantErr)
			}
		})
	}
}
