// Package mcpclients tests the MCP door with the official clients as they are published: package mcp for Python,
// @modelcontextprotocol/sdk for TypeScript, each over stdio and over streamable HTTP; and with the official conformance
// test suite, @modelcontextprotocol/conformance, over HTTP.
//
//	tools/live mcp
//
// The clients are client.py and client.mjs, which do what a line on their standard input says; the test drives all of
// them through the same conversation. Packages are installed once into the cache folder of testenv. Python 3.11 and
// Node.js 20 or newer are wanted.
package mcpclients
