-- A fresh database, not a copy of whatever was put into template1.
CREATE DATABASE "{name}" TEMPLATE template0
