// Package apiserver connects a server to the API server of its cluster. It detects
// silent connections and expired credentials within seconds.
//
//   - A connection that is silent for [limits.pingAfter] is pinged (HTTP/2), and
//     closed when no answer comes within [limits.pingTimeout].
//   - A request must be answered within [limits.answer], and a watch must start
//     within [limits.watchBegins]. A watch with bookmarks, which arrive about once a
//     minute, ends after [limits.watchSilence] without a byte. This detects silence
//     where pings do not: with HTTP/1.1, and behind proxies that answer pings
//     themselves.
//   - The kubeconfig and all files that it names, or the files of the pod's service
//     account, are checked every two seconds. The next request uses files that have
//     changed and then stayed the same. Watches are restarted, unless only the token
//     has changed.
//
// client-go does some of this, but its intervals are environment variables of the
// process, it checks certificates every five minutes and tokens once a minute, and it
// never reads a kubeconfig again.
package apiserver
