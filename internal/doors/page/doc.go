// Package page is the page that shows a slot in a browser: its files, and who may use it.
//
// The page is built from the HTTP API alone: what it can do, a client can do. Its files hold nothing of memory and are
// served without a token. If the slot has a token, the page is opened by a link that works once:
//
//	http://127.0.0.1:7077/page/#code=KX4...
//
// A browser keeps what follows # to itself. The page exchanges the code at POST /page/session for a session key, keeps
// the key in its memory and sends it as Authorization: Bearer. There is no cookie, because a cookie goes to every port
// of a host name and so to other local services. The key ends with the slot's process, or after 12 hours.
//
// The page is plain HTML, CSS and JavaScript modules without a framework or a build: assets/ is what is served. All
// text from memory is put into text nodes; Content-Security-Policy and Trusted Types forbid the rest.
package page
