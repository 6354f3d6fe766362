package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	logsapi "k8s.io/component-base/logs/api/v1"
	logsjson "k8s.io/component-base/logs/json"
	"k8s.io/klog/v2/textlogger"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// NewLogger returns a logger with the formats of Kubernetes components. Each entry is one line of
// printable characters for any values: callers, even unauthenticated ones, control names of objects,
// paths and user names.
func NewLogger(config v1alpha1.Log, to io.Writer) logr.Logger {
	if config.Format == v1alpha1.JSONLog {
		to := zapcore.Lock(logsjson.AddNopSync(printable{to}))
		logger, _ := logsjson.NewJSONLogger(logsapi.VerbosityLevel(config.Verbosity), to, nil, nil)
		return logger
	}
	return textlogger.NewLogger(textlogger.NewConfig(
		textlogger.Output(printable{to}), textlogger.Verbosity(int(config.Verbosity))))
}

// printable writes entries of a log, of which it gets each in one call. It escapes what cannot be printed as JSON
// does; in entries that are JSON already, that occurs only in strings, and without line breaks.
type printable struct{ to io.Writer }

// lineBreaks matches a value with line breaks, as the text logger writes it: a tab before each line.
var lineBreaks = regexp.MustCompile(`=<\n(?:\t.*\n)+ >`)

func quoteLines(value []byte) []byte {
	text := strings.TrimSuffix(strings.TrimPrefix(string(value), "=<"), "\n >")
	return strconv.AppendQuote([]byte("="), strings.ReplaceAll(text, "\n\t", "\n")[1:])
}

// Write implements io.Writer.
func (w printable) Write(entry []byte) (int, error) {
	text, size := bytes.TrimSuffix(entry, []byte("\n")), len(entry)
	if bytes.ContainsFunc(text, unprintable) {
		text, entry = lineBreaks.ReplaceAllFunc(text, quoteLines), nil
		for _, r := range string(text) {
			switch {
			case !unprintable(r):
				entry = utf8.AppendRune(entry, r)
			case r > 0xffff:
				high, low := utf16.EncodeRune(r)
				entry = fmt.Appendf(entry, `\u%04x\u%04x`, high, low)
			default:
				entry = fmt.Appendf(entry, `\u%04x`, r)
			}
		}
		entry = append(entry, '\n')
	}
	if _, err := w.to.Write(entry); err != nil {
		return 0, err
	}
	return size, nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// connectionsVerbosity is the verbosity at which failed handshakes and similar events are logged:
// everybody who can connect can cause them.
const connectionsVerbosity = 2

// connectionLog returns the error log of a http.Server, which reports failed connections and panics
// of handlers. Panics are always logged.
func connectionLog(logger logr.Logger) *log.Logger { return log.New(lineLog{logger}, "", 0) }

type lineLog struct{ logger logr.Logger }

// Write implements io.Writer.
func (l lineLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	// A line may quote data of callers. Only its beginning is from the server itself.
	first, stack, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(first, "http: panic serving ") || strings.HasPrefix(first, "http2: panic serving ") {
		l.logger.Error(errors.New(first), "a request was not answered", "stack", stack)
	} else {
		l.logger.V(connectionsVerbosity).Info(text)
	}
	return len(line), nil
}
