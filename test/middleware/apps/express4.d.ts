/** Express 4 is installed under another name; for what is used here its types are those of Express 5. */
declare module "express4" {
  import express from "express";

  export = express;
}
