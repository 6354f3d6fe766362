package tpm

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/google/go-eventlog/extract"
	"github.com/google/go-eventlog/tcg"

	"github.com/node-authorizer/node-authorizer/attest"
)

// secureBoot reports whether Secure Boot was on, by the events of its PCR. It refuses the events that the library does not
// survive: it calls itself without end for unknown types, and allocates memory of any size for a signature database.
func secureBoot(all []tcg.Event) (bool, error) {
	var events []tcg.Event
	for _, e := range all {
		if e.Index != secureBootPCR {
			continue
		}
		_, known := e.Type.KnownName()
		if !known || e.Type == tcg.EFIVariableDriverConfig && !fits(e.Data) {
			return false, attest.Refuse(EventLogInvalid, "event %d of PCR %d, of type %#x, is of no known form",
				e.Num(), e.Index, uint32(e.Type))
		}
		events = append(events, e)
	}
	state, err := extract.SecureBootState(events, extract.TPMRegisterConfig)
	if err != nil {
		return false, attest.Refuse(EventLogInvalid, "the state of Secure Boot: %.300s", err)
	}
	return state.GetEnabled(), nil
}

// fits reports whether the sizes of the lists in a signature database fit into it (UEFI, version 2.10, section 32.4.1). Other
// variables have none.
func fits(variable []byte) bool {
	const listHeader = 28
	v, err := tcg.ParseUEFIVariableData(bytes.NewReader(variable))
	if err != nil || !slices.Contains([]string{"PK", "KEK", "db", "dbx"}, v.VarName()) {
		return err == nil
	}
	for list := v.VariableData; len(list) >= listHeader; {
		size, header := binary.LittleEndian.Uint32(list[16:]), binary.LittleEndian.Uint32(list[20:])
		each := binary.LittleEndian.Uint32(list[24:]) // a signature, with the GUID of its owner
		if size < listHeader || size > uint32(len(list)) || header != 0 || each < 16 || (size-listHeader)%each != 0 {
			return false
		}
		list = list[size:]
	}
	return true
}

// The limits of digests: a TPM has up to five banks, and SHA-512 is the longest hash.
const (
	maxBanks  = 8
	maxDigest = 64
)

// plausible reports whether the digests that a log announces in its first event (TCG_EfiSpecIDEvent) are within the limits: for
// each digest of each event, the library allocates all of them.
func plausible(log []byte) bool {
	const signatureAt, countAt, size = 32, 56, 4
	if len(log) < countAt+size || !bytes.HasPrefix(log[signatureAt:], []byte("Spec ID Event03")) {
		return true // all digests are SHA-1
	}
	count, banks := binary.LittleEndian.Uint32(log[countAt:]), log[countAt+size:]
	for ; len(banks) >= size && count <= maxBanks && count > 0; count-- {
		if binary.LittleEndian.Uint16(banks[2:]) > maxDigest {
			return false
		}
		banks = banks[size:]
	}
	return count <= maxBanks
}
