package main

import (
	"testing"

	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

func TestChecksOfAll(t *testing.T) {
	nanobottest.Checks(t, nanobottest.Module{Name: "layered_memory", RecordEvent: recordEvent, RecordEvents: recordEvents, Retrieve: retrieve, Format: formatContext, Wait: waitUntilReady,
		Query: nativeQuery, Reset: resetScope})
}
