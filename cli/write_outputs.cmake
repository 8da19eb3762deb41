# SPDX-License-Identifier: Apache-2.0
# Script (cmake -P): writes what PROGRAM prints for shells and for man(1) into FOLDER.

foreach(SHELL bash zsh fish)
  execute_process(COMMAND "${PROGRAM}" completion ${SHELL} OUTPUT_FILE "${FOLDER}/completion.${SHELL}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND "${PROGRAM}" help --man OUTPUT_FILE "${FOLDER}/gemmery.1" COMMAND_ERROR_IS_FATAL ANY)
