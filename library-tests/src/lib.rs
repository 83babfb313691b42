//! Tests of the runtime that need libraries which it does not need itself. They stand apart from it so that the first
//! command of the README does not build these.
