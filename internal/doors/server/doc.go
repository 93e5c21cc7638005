// Package server is the HTTP door of a memory slot: the contract as HTTP/JSON, described at /openapi.json and /docs.
//
//	metrics, err := server.NewMetrics(nil)
//	h, err := host.New(ctx, host.Options{Observe: metrics.Observe})
//	slot, err := h.Open(ctx, provider)
//	s, err := server.New(server.Options{Slot: slot, Metrics: metrics})
//	err = s.Serve(ctx, listener)
//
// The door decodes, asks the slot, and encodes: the host decides what a request means. Bodies go through the codecs
// of package abi, so an unknown field or bytes that are not UTF-8 are refused here as everywhere. Every answer that is
// not a success is a problem document (package wire) with the AdapterError's fields.
//
// The status of an error follows from its code (abi.Code.HTTPStatus). Three statuses say more than the code alone,
// which is invalid_argument for the first two and timeout for the third: 405 (this path has other methods), 415 (the
// body does not say application/json, or is compressed) and 408 (the body did not arrive in time).
//
// Of huma the door uses the describing part: its registry makes the schemas from the Go types and its OpenAPI type the
// document. Its handling of requests is left out, because every default of it would have to be undone (1 MiB bodies,
// $schema in answers, silent repair of invalid UTF-8, an error form of its own).
//
// Reading order: options.go, server.go (what a request passes through), guard.go (who may ask), call.go (one call),
// routes.go (the table), serve.go (the life of a listener), openapi.go and schema.go (the description), docs.go (the
// page).
package server
