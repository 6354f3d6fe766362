package yamltext

import (
	"regexp"
	"sort"
	"strconv"
)

// The decoder reports a mistake with a line that can be the line of the mistake, the one
// before, or the one on which a list begins. So the line is found by decoding
// prefixes of the text, line by line.

// reportedPlace matches the errors of decoders: the line and the first mistake.
var reportedPlace = regexp.MustCompile(`(?s)^(?:error converting YAML to JSON: )?(?:yaml: )?(?:unmarshal errors:\n  )?` +
	`(?:line (\d+): )?([^\n]*)`)

// reported parses the decoder's error: its line, 0 if it has none, and the problem.
func reported(err error) (line int, problem string) {
	place := reportedPlace.FindStringSubmatch(err.Error())
	line, _ = strconv.Atoi(place[1])
	return line, place[2]
}

// endOfText is the problem of a construct that does not end.
const endOfText = "found unexpected end of stream"

// Locate finds the line of the mistake if check, which decodes YAML, returns an error
// for the text. It returns nil if check returns none.
//
// The text up to the line before the mistake can be decoded. A construct that spans
// lines cannot be decoded while it is incomplete. Then the mistake is on the first
// line up to which the error is the error of the whole text or, if a construct does not
// end, on the line on which it begins. The effort is bounded. Beyond the bound, the
// line is the one on which the construct begins, or else the one that the decoder
// reports.
func Locate(text []byte, check func([]byte) error) *Error {
	err := check(text)
	if err == nil {
		return nil
	}
	s := &search{text: text, check: check, ends: lineEnds(text), effort: min(8*len(text), 32<<20) + 4<<20}
	s.line, s.problem = reported(err)
	return &Error{Line: min(max(s.find(), 1), len(s.ends)), Problem: s.problem}
}

// search finds the line of a mistake.
type search struct {
	text  []byte
	check func([]byte) error
	ends  []int
	// line and problem are what the decoder reports for the whole text.
	line    int
	problem string
	// effort is how many more bytes are decoded.
	effort int
}

func (s *search) find() int {
	begin := s.line
	for good := 0; s.effort > 0; {
		first, ok := s.firstBad(good)
		if !ok {
			break
		}
		begin = first
		line := begin
		for ; line < len(s.ends); line++ {
			err, ok := s.read(line)
			if !ok {
				return begin
			}
			if err == nil {
				break
			}
			if at, problem := reported(err); at == s.line && problem == s.problem {
				return line
			}
		}
		if line == len(s.ends) {
			if s.problem == endOfText {
				return begin
			}
			return line
		}
		good = line
	}
	return begin
}

// firstBad returns the first line after a good one up to which the text cannot be
// decoded. It starts near the line that the decoder reports. ok is false if that
// takes too long.
func (s *search) firstBad(good int) (line int, ok bool) {
	ok = true
	bad := func(line int) bool {
		if line >= len(s.ends) {
			return true
		}
		err, done := s.read(line)
		ok = ok && done
		return err != nil || !done
	}
	low, high := good, len(s.ends)
	for step, at := 1, min(max(s.line-1, good+1), high); low < at && at < high; step *= 2 {
		if bad(at) {
			high = at
			at -= step
		} else {
			low = at
			at += step
		}
	}
	line = low + 1 + sort.Search(high-low-1, func(i int) bool { return bad(low + 1 + i) })
	return line, ok
}

// read decodes the text up to the end of a line. ok is false if the effort is
// exhausted.
func (s *search) read(line int) (err error, ok bool) {
	end := s.ends[line-1]
	if s.effort -= end; s.effort < 0 {
		return nil, false
	}
	return s.check(s.text[:end]), true
}

// lineEnds returns where each line of a text ends, its line break included.
func lineEnds(text []byte) []int {
	var ends []int
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(ends) == 0 || ends[len(ends)-1] < len(text) {
		ends = append(ends, len(text))
	}
	return ends
}
