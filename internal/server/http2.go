package server

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"

	"golang.org/x/net/http2"
)

// serveHTTP2 makes a server serve HTTP/2 as net/http does, except that the connections of
// unauthenticated callers have a frameGate.
func serveHTTP2(server *http.Server) error {
	over := &http2.Server{}
	if err := http2.ConfigureServer(server, over); err != nil {
		return err
	}
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(server *http.Server, conn *tls.Conn, handler http.Handler) {
			options := &http2.ServeConnOpts{BaseConfig: server, Handler: handler}
			// net/http passes the context of the connection in this way.
			if based, ok := handler.(interface{ BaseContext() context.Context }); ok {
				options.Context = based.BaseContext()
			}
			if caller := guardedUnder(conn); caller != nil && !caller.authenticated() {
				over.ServeConn(newFrameGate(conn, caller), options)
				return
			}
			over.ServeConn(conn, options)
		},
	}
	return nil
}

// HTTP/2, RFC 9113 sections 3.4, 4.1 and 6.
const (
	prefaceSize     = 24
	frameHeaderSize = 9

	frameData         = 0x0
	frameHeaders      = 0x1
	frameContinuation = 0x9
	flagEndHeaders    = 0x4
)

const (
	// framesPerRequest limits the frames for each request of a connection: the answer to a ping
	// costs as much as that to a request.
	framesPerRequest = 64
	// largeData is the size of a part of a body that does not count as a frame: the limit of
	// bytes limits their number.
	largeData = 1 << 10
)

// frameGate limits the HTTP/2 frames of an unauthenticated caller to the requests that the connection
// may have, and their frames. A refused or reset request would cost as much as one that is answered,
// and thousands fit into the limit of bytes. A frameGate counts requests before the server handles
// them.
//
// If requests have bodies, frames of later requests are discarded, because the bodies of earlier
// requests may follow. The answer to the last request tells the caller which requests to send on
// another connection.
type frameGate struct {
	*tls.Conn
	caller *guardedConn

	// Only the goroutine that reads uses the following fields. preface and payload are the
	// missing bytes of the preface and of the current frame. header is that of the next
	// frame; filled is how many bytes of it have arrived, and passing is the part of it that
	// may pass.
	preface, payload int
	header           [frameHeaderSize]byte
	filled           int
	passing          []byte
	requests, frames int32
	// lastStream is the stream of the last allowed request.
	lastStream uint32
	// inHeaders is true until the header fields of a request end, discards while the current
	// frame is discarded.
	inHeaders, discards bool
	ended               bool
}

func newFrameGate(conn *tls.Conn, caller *guardedConn) *frameGate {
	return &frameGate{Conn: conn, caller: caller, preface: prefaceSize}
}

// Read implements net.Conn. After the last allowed frame it waits until the connection is closed, so
// that the answers can still be sent.
func (g *frameGate) Read(b []byte) (int, error) {
	n, err := g.readFrom(g.Conn, b)
	if n == 0 && err == nil && g.ended {
		<-g.caller.closed
		return 0, errReadsTooMuch
	}
	return n, err
}

// readFrom reads the bytes that may pass. It returns 0 and no error if nothing may pass any more.
func (g *frameGate) readFrom(from io.Reader, b []byte) (n int, err error) {
	for !g.ended {
		switch {
		case len(g.passing) > 0:
			n = copy(b, g.passing)
			g.passing = g.passing[n:]
			return n, nil
		case g.preface > 0:
			n, err = from.Read(b[:min(len(b), g.preface)])
			g.preface -= n
			return n, err
		case g.payload > 0:
			n, err = from.Read(b[:min(len(b), g.payload)])
			g.payload -= n
			if !g.discards {
				return n, err
			}
		default:
			n, err = from.Read(g.header[g.filled:])
			if g.filled += n; g.filled == frameHeaderSize {
				g.filled = 0
				g.begin()
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// begin reads the header of a frame, and decides whether the frame passes.
func (g *frameGate) begin() {
	limits := &g.caller.guard.limits
	h := &g.header
	g.payload = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	kind, ends := h[3], h[4]&flagEndHeaders != 0
	stream := binary.BigEndian.Uint32(h[5:]) &^ (1 << 31)
	if kind != frameData || g.payload < largeData {
		g.frames++
	}
	if g.frames > limits.requests*framesPerRequest {
		g.caller.cutOff()
		g.ended = true
		return
	}
	last := g.requests >= limits.requests
	g.discards = last && stream > g.lastStream
	switch {
	case kind == frameHeaders && last:
		g.ended = !limits.bodies || !g.discards
	case kind == frameHeaders:
		g.requests++
		g.lastStream = max(g.lastStream, stream)
		g.inHeaders = !ends
	case g.inHeaders:
		g.inHeaders = kind != frameContinuation || !ends
	case last:
		g.ended = !limits.bodies
	}
	if !g.discards && !g.ended {
		g.passing = h[:]
	}
}
