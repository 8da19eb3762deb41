#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: in_environment.sh COMMAND…       runs COMMAND with what tools/setup.sh unpacked in reach
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec "$@"
